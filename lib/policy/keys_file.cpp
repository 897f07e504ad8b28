#include "lib/policy/fields.hpp"

#include <httpretry/policy/endpoint.hpp>

#include <algorithm>

namespace httpretry::policy_file {
namespace {

// Words stand in the order of the enum whose values they name.
constexpr std::string_view kFamilies[] = {"", "aws", "google", "github", "openai", "stripe"};
// A rule cannot make a failure of the transport of an answer.
constexpr std::string_view kClasses[] = {"success",   "pending", "throttle",
                                         "transient", "",        "permanent"};
constexpr std::string_view kSchemes[] = {"http", "https"};

constexpr Key kRuleKeys[] = {
    {.name = "status",
     .form = Form::Statuses,
     .nullable = false,
     .about = "Only for these statuses."},
    {.name = "json",
     .form = Form::Pointer,
     .field = at<&ErrorRule::selector>,
     .nullable = false,
     .about = "Where it stands in the body; \"*\" is any index of an array."},
    {.name = "header",
     .form = Form::Header,
     .field = at<&ErrorRule::selector>,
     .nullable = false,
     .about = "The header it stands in."},
    {.name = "xml",
     .form = Form::Element,
     .field = at<&ErrorRule::selector>,
     .nullable = false,
     .about = "The element of the body it stands in."},
    {.name = "in",
     .form = Form::Values,
     .field = at<&ErrorRule::in>,
     .nullable = false,
     .about = "The values; left out, being there is enough."},
    {.name = "as",
     .form = Form::Word,
     .field = at<&ErrorRule::as>,
     .words = kClasses,
     .required = kAll,
     .nullable = false,
     .about = "What the answer then is."},
};
constexpr Shape kRule{.name = "rule", .keys = kRuleKeys, .whole = true};

constexpr Key kMatchKeys[] = {
    {.name = "scheme",
     .form = Form::Text,
     .field = at<&EndpointPattern::scheme>,
     .words = kSchemes,
     .nullable = false},
    {.name = "host",
     .form = Form::Text,
     .field = at<&EndpointPattern::host>,
     .nullable = false,
     .about = "A name, \"*.suffix\" for one or more labels, \"[IPv6]\", or \"*\"."},
    {.name = "port",
     .form = Form::Port,
     .field = at<&EndpointPattern::port>,
     .least = 1,
     .most = 65535,
     .nullable = false},
    {.name = "path",
     .form = Form::Text,
     .field = at<&EndpointPattern::path>,
     .nullable = false,
     .about = "Segments: literal, \"*\" or \"{name}\" for any one, a final \"**\" for the rest."},
    {.name = "methods",
     .form = Form::Methods,
     .field = at<&EndpointPattern::methods>,
     .nullable = false},
};
constexpr Shape kMatch{.name = "match", .keys = kMatchKeys};

constexpr Key kEndpointKeys[] = {
    {.name = "name", .form = Form::Name, .nullable = false, .about = "For reports."},
    {.name = "match",
     .form = Form::Match,
     .required = kAll,
     .nullable = false,
     .about = "Which requests; the most specific entry wins, whatever their order."},
    {.name = "policy",
     .form = Form::PolicyRef,
     .required = kAll,
     .nullable = false,
     .about = "The name of a policy, or one."},
};
constexpr Shape kEndpoint{.name = "endpoint", .keys = kEndpointKeys};

constexpr Key kFileKeys[] = {
    {.name = "$schema", .form = Form::Name, .nullable = false, .about = "For editors."},
    {.name = "version",
     .form = Form::Version,
     .required = kAll,
     .nullable = false,
     .about = "Of this format: 1."},
    {.name = "default",
     .form = Form::PolicyRef,
     .about = "For requests that no entry matches: a policy's name, or a policy (standard)."},
    {.name = "policies", .form = Form::Policies, .nullable = false, .about = "Policies by name."},
    {.name = "endpoints",
     .form = Form::Endpoints,
     .nullable = false,
     .about = "Which requests get which policy."},
};
constexpr Shape kFile{.name = "file", .keys = kFileKeys};

}  // namespace

const Key* Shape::find(std::string_view wanted) const {
  const auto found =
      std::find_if(keys.begin(), keys.end(), [&](const Key& key) { return key.name == wanted; });
  return found == keys.end() ? nullptr : &*found;
}

const Shape& file_shape() { return kFile; }
const Shape& endpoint_shape() { return kEndpoint; }
const Shape& match_shape() { return kMatch; }
const Shape& rule_shape() { return kRule; }

Words family_words() { return kFamilies; }

}  // namespace httpretry::policy_file
