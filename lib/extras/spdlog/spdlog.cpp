#include <httpretry/spdlog/spdlog.hpp>

#include <spdlog/spdlog.h>

#include <stdexcept>

namespace httpretry {
namespace {

spdlog::level::level_enum level_of(LogLevel level) {
  switch (level) {
    case LogLevel::Info: return spdlog::level::info;
    case LogLevel::Warning: return spdlog::level::warn;
    case LogLevel::Error: return spdlog::level::err;
  }
  return spdlog::level::err;
}

}  // namespace

LogFunction spdlog_logger(std::string name) {
  return [name = std::move(name)](LogLevel level, std::string_view line) {
    const auto logger = spdlog::get(name);
    // The caller catches this and writes the line to standard error.
    if (!logger) throw std::runtime_error("spdlog has no logger " + name);
    logger->log(level_of(level), spdlog::string_view_t(line.data(), line.size()));
  };
}

}  // namespace httpretry
