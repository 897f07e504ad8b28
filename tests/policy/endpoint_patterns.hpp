// Patterns and URLs as the tests write them:
//   host=*.b,a.c path=/x/** methods=GET,PUT header:tier=gold query:action=Get*
#pragma once

#include <httpretry/policy/endpoint.hpp>

#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>

namespace endpoint_test {

inline httpretry::EndpointPattern pattern(std::string_view text) {
  httpretry::EndpointPattern made;
  std::istringstream words{std::string(text)};
  for (std::string word; words >> word;) {
    const auto equals = word.find('=');
    const auto key = word.substr(0, equals);
    const auto value = word.substr(equals + 1);
    if (key == "scheme") {
      made.scheme = value;
    } else if (key == "host") {
      std::istringstream list(value);
      for (std::string host; std::getline(list, host, ',');) {
        if (!made.host) {
          made.host = host;
        } else {
          made.more_hosts.push_back(host);
        }
      }
    } else if (key.starts_with("header:")) {
      made.headers[key.substr(7)] = value;
    } else if (key.starts_with("query:")) {
      made.query[key.substr(6)] = value;
    } else if (key == "port") {
      made.port = static_cast<std::uint16_t>(std::stoi(value));
    } else if (key == "path") {
      made.path = value;
    } else if (key == "methods") {
      std::istringstream list(value);
      for (std::string method; std::getline(list, method, ',');) made.methods.push_back(method);
    } else {
      throw std::invalid_argument("no key of a pattern: " + key);
    }
  }
  return made;
}

inline httpretry::Url url(std::string_view text) { return httpretry::Url::parse(text).value(); }

}  // namespace endpoint_test
