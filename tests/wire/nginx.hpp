// nginx with a few files, for what only a grown-up server does right. REQUIREs that it is
// installed.
#pragma once

#include "files.hpp"
#include "processes.hpp"

#include <map>
#include <optional>

namespace httpretry {

class Nginx {
 public:
  // `directives` stand in its server block.
  Nginx(const std::string& directives, const std::map<std::string, std::string>& files);

  [[nodiscard]] std::string url(const std::string& path) const;
  [[nodiscard]] std::string unix_socket() const { return directory_.file("socket"); }
  // Puts another file in the place of one.
  void replace(const std::string& name, const std::string& content) const;

 private:
  [[nodiscard]] std::vector<std::string> command(int port) const;
  TemporaryDirectory directory_;
  std::string directives_;
  std::optional<ServerProcess> process_;  // last: it ends before its files go
};

}  // namespace httpretry
