// Response::json_at and json_text: the scalars of a JSON body, as standard types.
#include <httpretry/http/response.hpp>

#include <nlohmann/json.hpp>

namespace httpretry {
namespace {

using nlohmann::json;

// nlohmann's parser does not recurse, but the destructor of the document does. So a text nested
// more deeply than any real response is refused while it is read.
constexpr int kDeepest = 512;

// Returns the document, or a discarded value if the text is not JSON or is nested too deeply.
json parse(const std::string& text) {
  bool too_deep = false;
  auto document = json::parse(
      text,
      [&](int depth, json::parse_event_t /*event*/, json& /*value*/) {
        too_deep = too_deep || depth > kDeepest;
        return !too_deep;
      },
      /*allow_exceptions=*/false);
  return too_deep ? json(json::value_t::discarded) : document;
}

// Returns the error of json_at if there is no scalar at `pointer`.
Error no_value(std::string_view pointer, std::string_view why) {
  return Error(Errc::Protocol, "the response has no value at \"" + std::string(pointer) +
                                   "\": " + std::string(why));
}

// Returns the value that json_at found at `pointer` as a standard type: a null, Boolean, number or
// string. A whole number becomes a std::int64_t if it fits, otherwise a std::uint64_t. Returns an
// error for an array or object. `pointer` is only for the message of the error.
Result<JsonValue> scalar(const json& value, std::string_view pointer) {
  switch (value.type()) {
    case json::value_t::null: return JsonValue(nullptr);
    case json::value_t::boolean: return JsonValue(value.get<bool>());
    case json::value_t::number_integer: return JsonValue(value.get<std::int64_t>());
    case json::value_t::number_unsigned: {  // any whole number without a minus sign
      const auto number = value.get<std::uint64_t>();
      if (number <= INT64_MAX) return JsonValue(static_cast<std::int64_t>(number));
      return JsonValue(number);
    }
    case json::value_t::number_float: return JsonValue(value.get<double>());
    case json::value_t::string: return JsonValue(value.get<std::string>());
    case json::value_t::array: return no_value(pointer, "it is an array");
    case json::value_t::object: return no_value(pointer, "it is an object");
    // Never reached: JSON has no `binary`, and json_at has handled `discarded`, a failed parse.
    default: return no_value(pointer, "the body is not JSON");
  }
}

}  // namespace

// Returns the scalar at a JSON pointer (RFC 6901). The error is Errc::Protocol if the body has no
// such value, and Errc::InvalidRequest if `pointer` is not a JSON pointer or the body was not kept.
Result<JsonValue> Response::json_at(std::string_view pointer) const {
  if (body.empty() && delivered > 0) {
    auto error = no_value(pointer, "the body went to the sink of the request");
    error.code = Errc::InvalidRequest;
    return error;
  }
  const auto document = parse(body);
  if (document.is_discarded()) return no_value(pointer, "the body is not JSON");
  try {
    const json::json_pointer path{std::string(pointer)};
    if (!document.contains(path)) return no_value(pointer, "there is no such value");
    return scalar(document.at(path), pointer);
  } catch (const json::out_of_range&) {  // an index that is too large for a std::size_t
    return no_value(pointer, "there is no such value");
  } catch (const json::exception&) {
    return Error(Errc::InvalidRequest, "\"" + std::string(pointer) + "\" is not a JSON pointer");
  }
}

std::string Response::json_text(std::string_view pointer) const {
  const auto value = json_at(pointer);
  const auto* text = value ? std::get_if<std::string>(&*value) : nullptr;
  return text == nullptr ? std::string() : *text;
}

}  // namespace httpretry
