// The environment variables of OpenTelemetry.
#include <httpretry/telemetry/telemetry.hpp>

#include <doctest/doctest.h>

#include <unistd.h>
#include <cstdlib>
#include <map>

using namespace httpretry;
using namespace std::chrono_literals;

namespace {

// Of this process, and as before at the end.
class Environment {
 public:
  explicit Environment(const std::map<std::string, std::string>& variables) {
    for (char** entry = environ; *entry != nullptr; ++entry) {
      const std::string text = *entry;
      if (text.starts_with("OTEL_"))
        before_[text.substr(0, text.find('='))] = text.substr(text.find('=') + 1);
    }
    for (const auto& [name, value] : before_) ::unsetenv(name.c_str());
    for (const auto& [name, value] : variables) {
      ::setenv(name.c_str(), value.c_str(), 1);
      set_.push_back(name);
    }
  }
  ~Environment() {
    for (const auto& name : set_) ::unsetenv(name.c_str());
    for (const auto& [name, value] : before_) ::setenv(name.c_str(), value.c_str(), 1);
  }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  std::map<std::string, std::string> before_;
  std::vector<std::string> set_;
};

std::string shown(const OtlpOptions& options) {
  std::string text = options.endpoint + " t=" + options.traces_endpoint +
                     " m=" + options.metrics_endpoint + " " + options.service_name + " " +
                     std::to_string(options.timeout / 1ms);
  if (!options.compression.empty()) text += " " + options.compression;
  for (const auto field : options.headers) {
    text.append(" ").append(field.name).append(":").append(field.value);
  }
  for (const auto& [name, value] : options.resource) text.append(" " + name + "=" + value);
  return text;
}

std::string joined(const std::vector<std::string>& problems) {
  std::string text;
  for (const auto& problem : problems) text += problem + "\n";
  return text;
}

constexpr auto* kDefault = "http://localhost:4318 t= m= unknown_service 10000";

}  // namespace

TEST_CASE("each variable does what the standard says, and what cannot be used is told") {
  struct Row {
    std::map<std::string, std::string> variables;
    std::string options;
    std::string problems;
  };
  const Row rows[] = {
      {{}, kDefault, ""},
      {{{"OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:1/x"}},
       "http://c:1/x t= m= unknown_service 10000",
       ""},
      {{{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://t"},
        {"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "http://m"}},
       "http://localhost:4318 t=http://t m=http://m unknown_service 10000",
       ""},
      {{{"OTEL_EXPORTER_OTLP_ENDPOINT", ""}, {"OTEL_SERVICE_NAME", ""}}, kDefault, ""},
      {{{"OTEL_EXPORTER_OTLP_ENDPOINT", "collector:4318"},
        {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://me:s3cr3t@"},
        {"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "ftp://m"}},
       kDefault,
       "OTEL_EXPORTER_OTLP_ENDPOINT: not a usable URL such as http://localhost:4318; it is "
       "ignored\n"
       "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: not a usable URL such as http://localhost:4318; it is "
       "ignored\n"
       "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: not a usable URL such as http://localhost:4318; it is "
       "ignored\n"},
      {{{"OTEL_EXPORTER_OTLP_HEADERS", "Api-Key=a%20b, x=y=z,,"}},
       "http://localhost:4318 t= m= unknown_service 10000 Api-Key:a b x:y=z",
       ""},
      {{{"OTEL_EXPORTER_OTLP_HEADERS", "s3cr3t,=s3cr3t,ok=1,bad name=s3cr3t,cr=%0d"}},
       "http://localhost:4318 t= m= unknown_service 10000 ok:1",
       "OTEL_EXPORTER_OTLP_HEADERS: an item is not NAME=VALUE; it is ignored\n"
       "OTEL_EXPORTER_OTLP_HEADERS: an item is not NAME=VALUE; it is ignored\n"
       "OTEL_EXPORTER_OTLP_HEADERS: an item is not a header; it is ignored\n"
       "OTEL_EXPORTER_OTLP_HEADERS: an item is not a header; it is ignored\n"},
      {{{"OTEL_EXPORTER_OTLP_TIMEOUT", "250"}},
       "http://localhost:4318 t= m= unknown_service 250",
       ""},
      {{{"OTEL_EXPORTER_OTLP_TIMEOUT", "10s"}},
       kDefault,
       "OTEL_EXPORTER_OTLP_TIMEOUT: \"10s\" is not a number; it is ignored\n"},
      {{{"OTEL_EXPORTER_OTLP_TIMEOUT", "0"}},
       kDefault,
       "OTEL_EXPORTER_OTLP_TIMEOUT: \"0\" is not between 1 and 86399999; it is ignored\n"},
      {{{"OTEL_EXPORTER_OTLP_TIMEOUT", "1"}}, "http://localhost:4318 t= m= unknown_service 1", ""},
      {{{"OTEL_EXPORTER_OTLP_TIMEOUT", "86399999"}},
       "http://localhost:4318 t= m= unknown_service 86399999",
       ""},
      {{{"OTEL_EXPORTER_OTLP_TIMEOUT", "86400000"}},
       kDefault,
       "OTEL_EXPORTER_OTLP_TIMEOUT: \"86400000\" is not between 1 and 86399999; it is ignored\n"},
      {{{"OTEL_SERVICE_NAME", "shop"}, {"OTEL_RESOURCE_ATTRIBUTES", "service.name=x,a=b%2Cc"}},
       "http://localhost:4318 t= m= shop 10000 a=b,c",
       ""},
      {{{"OTEL_RESOURCE_ATTRIBUTES", "cafe=decade,b=50%,c=%4,d=%4z,e=%z4,f=%C3%a9f"}},
       "http://localhost:4318 t= m= unknown_service 10000 cafe=decade b=50% c=%4 d=%4z e=%z4 f=éf",
       ""},
      {{{"OTEL_RESOURCE_ATTRIBUTES", "service.name=x"}}, "http://localhost:4318 t= m= x 10000", ""},
      {{{"OTEL_EXPORTER_OTLP_PROTOCOL", "http/json"}}, kDefault, ""},
      {{{"OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"}},
       kDefault,
       "OTEL_EXPORTER_OTLP_PROTOCOL: \"grpc\" is not supported; http/json is used\n"},
      {{{"OTEL_BSP_SCHEDULE_DELAY", "1"}, {"OTEL_LOG_LEVEL", "info"}, {"OTEL_EMPTY", ""}},
       kDefault,
       "OTEL_BSP_SCHEDULE_DELAY, OTEL_LOG_LEVEL: no effect here\n"},
      {{{"OTEL_EXPORTER_OTLP_COMPRESSION", "gzip"}},
       "http://localhost:4318 t= m= unknown_service 10000 gzip",
       ""},
      {{{"OTEL_EXPORTER_OTLP_COMPRESSION", "none"}}, kDefault, ""},
      {{{"OTEL_EXPORTER_OTLP_COMPRESSION", "snappy"}},
       kDefault,
       "OTEL_EXPORTER_OTLP_COMPRESSION: \"snappy\" is not gzip or none; it is ignored\n"},
  };
  for (const auto& row : rows) {
    const Environment environment(row.variables);
    std::vector<std::string> problems;
    const auto options = OtlpOptions::from_environment(&problems);
    CHECK(shown(options) == row.options);
    CHECK(joined(problems) == row.problems);
    CHECK(shown(OtlpOptions::from_environment()) == row.options);
  }
}

TEST_CASE("the sampler of the environment") {
  struct Row {
    const char* name;
    const char* argument;
    bool parent_based;
    double ratio;
    const char* problem;
  };
  const Row rows[] = {
      {"", "", true, 1, ""},
      {"always_on", "", false, 1, ""},
      {"always_off", "", false, 0, ""},
      {"traceidratio", "0.25", false, 0.25, ""},
      {"parentbased_always_on", "", true, 1, ""},
      {"parentbased_always_off", "", true, 0, ""},
      {"parentbased_traceidratio", "0.5", true, 0.5, ""},
      {"traceidratio", "", false, 1, ""},
      {"traceidratio", "1.5", false, 1,
       "OTEL_TRACES_SAMPLER_ARG: \"1.5\" is not between 0 and 1; it is ignored\n"},
      {"traceidratio", "0", false, 0, ""},
      {"traceidratio", "1", false, 1, ""},
      {"traceidratio", "-0.5", false, 1,
       "OTEL_TRACES_SAMPLER_ARG: \"-0.5\" is not between 0 and 1; it is ignored\n"},
      {"always_off", "0.5", false, 0, ""},
      {"traceidratio", "half", false, 1,
       "OTEL_TRACES_SAMPLER_ARG: \"half\" is not a number; it is ignored\n"},
      {"traceidratio", "nan", false, 1,
       "OTEL_TRACES_SAMPLER_ARG: \"nan\" is not between 0 and 1; it is ignored\n"},
      {"jaeger_remote", "", true, 1,
       "OTEL_TRACES_SAMPLER: \"jaeger_remote\" is not known; parentbased_always_on is used\n"},
  };
  for (const auto& row : rows) {
    const std::map<std::string, std::string> variables{{"OTEL_TRACES_SAMPLER", row.name},
                                                       {"OTEL_TRACES_SAMPLER_ARG", row.argument}};
    const Environment environment(variables);
    TracesOptions options;
    std::vector<std::string> problems;
    sample_as_environment(options, &problems);
    CHECK(options.parent_based == row.parent_based);
    CHECK(options.sample_ratio == row.ratio);
    CHECK(joined(problems) == row.problem);
  }
  for (const auto* value : {"true", "1"}) {
    const std::map<std::string, std::string> variables{{"OTEL_SDK_DISABLED", value}};
    const Environment environment(variables);
    TracesOptions options;
    sample_as_environment(options);
    CHECK(options.sample_ratio == (value[0] == 't' ? 0 : 1));
    CHECK(options.parent_based == (value[0] != 't'));
  }
}
