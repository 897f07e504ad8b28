#include "nginx.hpp"

#include <sys/stat.h>

namespace httpretry {

Nginx::Nginx(const std::string& directives, const std::map<std::string, std::string>& files)
    : directives_(directives) {
  REQUIRE(::mkdir(directory_.file("www").c_str(), 0755) == 0);
  // Its workers are another user where the tests run as root.
  REQUIRE(::chmod(directory_.file("").c_str(), 0755) == 0);
  for (const auto& [name, content] : files) replace(name, content);
  process_.emplace(
      "nginx-light", [this](int port) { return command(port); }, directory_.file("out"));
}

std::vector<std::string> Nginx::command(int port) const {
  const auto at = [this](const char* name) { return directory_.file(name); };
  write_file(at("nginx.conf"),
             "daemon off; worker_processes 1; pid " + at("pid") + "; error_log " + at("error_log") +
                 ";\nevents { worker_connections 64; }\nhttp { access_log off;"
                 "\nclient_body_temp_path " +
                 at("t1") + "; proxy_temp_path " + at("t2") + "; fastcgi_temp_path " + at("t3") +
                 "; uwsgi_temp_path " + at("t4") + "; scgi_temp_path " + at("t5") +
                 // In that order: whoever finds the port open finds the socket, too.
                 ";\nserver { listen unix:" + unix_socket() + "; listen 127.0.0.1:" +
                 std::to_string(port) + "; root " + at("www") + ";\n" + directives_ + "\n} }\n");
  return {"/usr/sbin/nginx", "-p", at(""), "-c", at("nginx.conf"), "-e", at("error_log")};
}

std::string Nginx::url(const std::string& path) const {
  return "http://127.0.0.1:" + std::to_string(process_->port()) + path;
}

void Nginx::replace(const std::string& name, const std::string& content) const {
  write_file(directory_.file("www/" + name), content);
}

}  // namespace httpretry
