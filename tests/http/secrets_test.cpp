// What a log may show of a header.
#include <httpretry/http/headers.hpp>
#include <httpretry/http/shown_value.hpp>

#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <vector>

using namespace httpretry;

TEST_CASE("a header whose name tells a secret is not shown") {
  for (const std::string_view name : {"Authorization",
                                      "Proxy-Authorization",
                                      "x-ms-copy-source-authorization",
                                      "Cookie",
                                      "Set-Cookie",
                                      "X-Api-Key",
                                      "apikey",
                                      "Ocp-Apim-Subscription-Key",
                                      "X-Amz-Server-Side-Encryption-Customer-Key",
                                      "X-Amz-Security-Token",
                                      "X-CSRFToken",
                                      "X-Client-Secret",
                                      "X-Hub-Signature-256",
                                      "X-Credentials",
                                      "Cf-Access-Jwt-Assertion",
                                      "X-Goog-Iap-Jwt-Assertion",
                                      "X-Amzn-Oidc-Data",
                                      "X-Amzn-Oidc-Accesstoken",
                                      "CB-ACCESS-PASSPHRASE",
                                      "CB-ACCESS-SIGN",
                                      "X-Pwd",
                                      "X-Auth",
                                      "X-Auth-Request-Email",
                                      "X-Session-Id",
                                      "SessionId",
                                      "X-Otp",
                                      "X-Bearer",
                                      "X-Sig",
                                      "DPoP",
                                      "x_jwt"}) {
    CAPTURE(name);
    CHECK(tells_secret(name));
    CHECK(shown_value(name, "s3cr3t") == "REDACTED");
    CHECK(shown_value(name, "https://h/") == "REDACTED");
  }
}

TEST_CASE("a header that helps to find a mistake is shown") {
  for (const std::string_view name : {"X-RateLimit-Limit",
                                      "X-RateLimit-Remaining",
                                      "X-RateLimit-Reset",
                                      "RateLimit-Policy",
                                      "x-ratelimit-remaining-tokens",
                                      "anthropic-ratelimit-input-tokens-remaining",
                                      "anthropic-ratelimit-tokens-reset",
                                      "WWW-Authenticate",
                                      "Proxy-Authenticate",
                                      "Idempotency-Key",
                                      "X-Idempotency-Key",
                                      "X-Request-Id",
                                      "traceparent",
                                      "tracestate",
                                      "ETag",
                                      "If-None-Match",
                                      "Retry-After",
                                      "Content-Type",
                                      "X-Author",
                                      "X-Design",
                                      "X-Options",
                                      "Access-Control-Allow-Headers",
                                      "Keep-Alive",
                                      "Server",
                                      "Via",
                                      "Signal",
                                      "Compass"}) {
    CAPTURE(name);
    CHECK_FALSE(tells_secret(name));
    CHECK(shown_value(name, "W/\"a, b=c; <d>\" <e") == "W/\"a, b=c; <d>\" <e");
  }
}

TEST_CASE("the same names tell a secret in a query") {
  for (const auto* name : {"api_key", "AWSAccessKeyId", "accessToken", "client_secret",
                           "jsessionid", "X-Amz-Credential", "sig", "X-Goog-Signature", "pwd"}) {
    CAPTURE(name);
    CHECK(tells_secret(name));
  }
  for (const auto* name : {"page", "max_tokens", "author", "q", "id", "valid", ""}) {
    CAPTURE(name);
    CHECK_FALSE(tells_secret(name));
  }
}

TEST_CASE("a URL in a header is shown without user, password and values of its query") {
  struct Row {
    std::string_view name;
    std::string_view value;
    std::string_view shown;
  };
  for (const auto& row : std::vector<Row>{
           {"Location", "https://u:s3cr3t@h/a?page=s3cr3t&sig=s3cr3t#f=s3cr3t&g",
            "https://REDACTED:REDACTED@h/a?page=REDACTED&sig=REDACTED#f=REDACTED&REDACTED"},
           {"location", "/a/b?code=s3cr3t", "/a/b?code=REDACTED"},
           {"Location", "?s3cr3t", "?REDACTED"},
           {"Location", "//u:s3cr3t@h/a@b", "//REDACTED:REDACTED@h/a@b"},
           {"Location", "https://h/?a=s3cr3t with \"blanks\" s3cr3t", "https://h/?a=REDACTED"},
           {"Location", "https://h/a#section", "https://h/a#REDACTED"},
           {"Location", "https://h/?", "https://h/?"},
           {"Location", "https://h/?a&&b=", "https://h/?REDACTED&&b=REDACTED"},
           {"Location", "https://h/a/b", "https://h/a/b"},
           {"Content-Location", "b?c=s3cr3t", "b?c=REDACTED"},
           {"Referer", "/?q=s3cr3t", "/?q=REDACTED"},
           {"Operation-Location", "/operations/7?token=s3cr3t", "/operations/7?token=REDACTED"},
           {"X-Original-URL", "/a?b=s3cr3t", "/a?b=REDACTED"},
           {"x-ms-copy-source", "https://h/c/blob?sv=s3cr3t&sig=s3cr3t",
            "https://h/c/blob?sv=REDACTED&sig=REDACTED"},
           {"Link", "<https://h/a?after=s3cr3t,s3cr3t>; rel=\"next\", </b?c=s3cr3t>; rel=last",
            "<https://h/a?after=REDACTED>; rel=\"next\", </b?c=REDACTED>; rel=last"},
           {"Link", "<https://u:s3cr3t@h/a?b=s3cr3t", "<https://REDACTED:REDACTED@h/a?b=REDACTED"},
           {"WWW-Authenticate", "Bearer realm=\"https://h/t?a=s3cr3t\", scope=\"b?c=d\"",
            "Bearer realm=\"https://h/t?a=REDACTED\", scope=\"b?c=d\""},
           {"X-Info", "see 'HTTPS://h/?a=s3cr3t' (or redis://:s3cr3t@h/0)",
            "see 'HTTPS://h/?a=REDACTED' (or redis://REDACTED:REDACTED@h/0)"},
           {"X-Info", "https://a/,https://u:s3cr3t@b/?c=s3cr3t,https://u:s3cr3t@d/",
            "https://a/,https://REDACTED:REDACTED@b/?c=REDACTED"},
           {"X-Info", "a://b://u:s3cr3t@c", "a://b://REDACTED:REDACTED@c"},
           {"X-Info", "://x?y ?z", "://x?y ?z"},
           {"X-Info", "", ""}}) {
    CAPTURE(row.value);
    CHECK(shown_value(row.name, row.value) == row.shown);
  }
}

TEST_CASE("a malformed URL in a header does not show its user and password either") {
  struct Row {
    std::string_view value;
    std::string_view shown;
  };
  for (const auto& row :
       std::vector<Row>{{"https:///u:s3cr3t@h/a", "https:///REDACTED:REDACTED@h/a"},
                        {"///u:s3cr3t@h/a", "///REDACTED:REDACTED@h/a"},
                        {"https:/u:s3cr3t@h/a@b", "https:/REDACTED:REDACTED@h/a@b"},
                        {R"(https:\\u:s3cr3t@h\a)", R"(https:\\REDACTED:REDACTED@h\a)"},
                        {"https:u:s3cr3t@h/a", "REDACTED:REDACTED@h/a"},
                        {"u:s3cr3t@h/a", "REDACTED:REDACTED@h/a"},
                        {":/u:s3cr3t@h/a", ":/REDACTED:REDACTED@h/a"},
                        {"://u:s3cr3t@h/a", "://REDACTED:REDACTED@h/a"},
                        {"https://u:s3cr3t/s3cr3t@h/a", "https://REDACTED:REDACTED"},
                        {"https://u:s3cr3t?s3cr3t@h/a", "https://REDACTED:REDACTED"},
                        {"https://u:s3cr3t#s3cr3t@h/a?b=s3cr3t", "https://REDACTED:REDACTED"},
                        {"https://h:80/a@b", "https://h:80/a@b"},
                        {"https://[::1]/a@b", "https://[::1]/a@b"},
                        {"https://h:x/a", "https://h:x/a"},
                        {"/a:b/c@d", "/a:b/c@d"},
                        {"/a:b@h/c", "/a:b@h/c"},
                        {"me@h", "me@h"}}) {
    CAPTURE(row.value);
    CHECK(shown_value("Location", row.value) == row.shown);
  }
}
