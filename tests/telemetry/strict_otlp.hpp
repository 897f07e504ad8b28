// What OTLP over HTTP in JSON demands of a request, read as strictly as the standard allows.
#pragma once

#include <httpretry/testing/testing.hpp>

#include <nlohmann/json.hpp>

#include <string>
#include <vector>

namespace httpretry {

using OtlpJson = nlohmann::json;

// What is wrong with a request to a collector; empty if nothing is.
std::vector<std::string> wrong_in(const SeenRequest& request);
std::vector<std::string> wrong_in_spans(const OtlpJson& body);
std::vector<std::string> wrong_in_metrics(const OtlpJson& body);

// All spans, or metrics, of a body.
std::vector<OtlpJson> spans_of(const OtlpJson& body);
std::vector<OtlpJson> metrics_of(const OtlpJson& body);
// The value of an attribute, whatever its kind; "-" if there is none.
std::string attribute_of(const OtlpJson& holder, std::string_view key);

}  // namespace httpretry
