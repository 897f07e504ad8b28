// Links brotli and zstd, which the component brings along.
#include <httpretry/compression/compression.hpp>
#include <httpretry/httpretry.hpp>

#include <array>
#include <cstdio>
#include <string>

int main() {
  httpretry::ClientOptions options;
  options.connection.content_codings = {httpretry::brotli(), httpretry::zstd()};
  const httpretry::Client client(options);
  for (const auto& coding : options.connection.content_codings) {
    std::string_view text = "compressed";
    std::array<char, 100> encoded{};
    const auto step = coding.encoder()->run(text, encoded, true);
    if (step.state != httpretry::ContentCoder::State::End || step.written == 0) return 1;
  }
  std::puts("consumer_of_compression: ok");
}
