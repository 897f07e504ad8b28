#include "cli/reference.hpp"
#include "lib/core/base/text.hpp"
#include "send/flags.hpp"

#include <algorithm>
#include <string>
#include <vector>

namespace httpretry::cli {
namespace {

struct Missing {
  std::string_view options;  // with a space before and after each
  std::string_view why;      // or what to use instead
};

constexpr Missing kMissing[] = {
    {" -a --append -B --use-ascii --compressed-ssh --create-file-mode --crlf --disable-eprt"
     " --disable-epsv --ftp-account --ftp-alternative-to-user --ftp-create-dirs --ftp-method"
     " --ftp-pasv -P --ftp-port --ftp-pret --ftp-skip-pasv-ip --ftp-ssl-ccc --ftp-ssl-ccc-mode"
     " --ftp-ssl-control --hostpubmd5 --hostpubsha256 --krb -l --list-only --login-options"
     " --mail-auth --mail-from --mail-rcpt --mail-rcpt-allowfails --pubkey -Q --quote"
     " --sasl-authzid --sasl-ir --ssl --ssl-reqd -t --telnet-option --tftp-blksize"
     " --tftp-no-options ",
     "it is for protocols other than HTTP"},
    {" --ssl-auto-client-cert --ssl-no-revoke --ssl-revoke-best-effort"
     " --proxy-ssl-auto-client-cert ",
     "it is for Windows"},
    {" --egd-file --metalink --no-npn --ntlm-wb --random-file ",
     "it has no effect in recent versions of curl; leave it out"},
    {" -0 --http1.0 --http0.9 --http3 --http3-only --haproxy-protocol --raw --tr-encoding ",
     "only HTTP/1.1 and HTTP/2 are sent; use --http1.1 or --http2"},
    {" --alt-svc --hsts ",
     "a request goes to the origin of its URL only; write https:// in the URL"},
    {" -1 --tlsv1 --tlsv1.0 --tlsv1.1 -2 --sslv2 -3 --sslv3 --ssl-allow-beast --proxy-tlsv1"
     " --proxy-ssl-allow-beast ",
     "TLS before 1.2 is not safe; use --tlsv1.2 or --tlsv1.3"},
    {" --false-start --no-sessionid ",
     "a TLS session is resumed only with the same certificates; leave it out"},
    {" --engine --tlsauthtype --tlspassword --tlsuser ", "use --cert and --key, which read files"},
    {" --negotiate --delegation --service-name ",
     "Kerberos is not supported; use --ntlm, --digest, --oauth2-bearer, or --cert"},
    {" --proxy-anyauth --proxy-negotiate --proxy-ntlm --proxy-service-name --socks5-basic"
     " --socks5-gssapi --socks5-gssapi-nec --socks5-gssapi-service ",
     "use -U with --proxy-basic or --proxy-digest; a SOCKS proxy gets the name and password of -U"},
    {" --proxy-capath ", "use --proxy-cacert"},
    {" --proxy-tlsauthtype --proxy-tlspassword --proxy-tlsuser ", "use -U or --proxy-cert"},
    {" --preproxy --proxy1.0 ", "only one proxy is possible, with HTTP/1.1 or SOCKS; use -x"},
    {" --dns-interface --dns-ipv4-addr --dns-ipv6-addr --dns-servers --doh-cert-status"
     " --doh-insecure --doh-url ",
     "the system looks up names; --resolve gives the address of one"},
    {" --abstract-unix-socket ", "use --unix-socket"},
    {" --tcp-fastopen ",
     "a server may receive the first packet twice, which is not safe for every request"},
    {" --trace-ascii --trace-time --libcurl ",
     "use --trace, -v or --report; they do not show secrets"},
    {" --styled-output ", "use --color"},
    {" --rate ", "the policy limits the rate of requests, and --parallel-max the number in flight"},
    {" --xattr ", "use -D FILE, which has the headers"},
    {" --request-target ", "the target is the path of the URL; --path-as-is keeps its dots"},
    {" --ignore-content-length ", "a response with a wrong length is an error"},
    {" --form-escape ", "quotes in the names of a form are percent-encoded, as in browsers"},
    {" -M --manual ", "use httpretry manual"},
};

// Options of other programs, with the option to use instead.
constexpr Missing kUsualWords[] = {
    {" --retries --max-retries --retry-count --attempts --max-attempts --tries ",
     "--retry 3, which is up to four attempts"},
    {" --timeout --request-timeout --read-timeout ",
     "-m 5 (all attempts together), or --set attempt_timeout=5s (each)"},
    {" --delay --wait --waitretry --backoff ", "--retry-delay 2, or --set backoff.initial=200ms"},
    {" --method ", "--request"},
    {" --headers ", "--header, or --include to show those of the response"},
    {" --body --body-data --post-data ", "--data"},
    {" --quiet ", "--silent"},
    {" --follow --follow-redirects ", "--location"},
    {" --no-check-certificate ", "--insecure"},
    {" --output-document ", "--output"},
};

const Missing* find_in(const auto& table, std::string_view option) {
  const auto word = " " + std::string(option) + " ";
  const auto* found = std::ranges::find_if(
      table, [&](const Missing& row) { return row.options.find(word) != std::string_view::npos; });
  return found == std::end(table) ? nullptr : found;
}

}  // namespace

// Returns the options of curl that are refused, for the manual. Each entry is a group of them: its
// name is a list such as "-0, --http1.0", and its meaning says why they are refused, or what to use
// instead. The entries only refer to their texts, so the lists are static as well.
std::span<const Entry> refused_options() {
  static const std::vector<std::string> lists = [] {
    std::vector<std::string> all_lists;
    for (const auto& group : kMissing) {
      std::string list;
      // The options of a group are " -0 --http1.0 ", with a space before and after each.
      for (auto rest = group.options.substr(1); !rest.empty();) {
        list.append(list.empty() ? "" : ", ").append(take_until(rest, ' '));
      }
      all_lists.push_back(std::move(list));
    }
    return all_lists;
  }();
  static const std::vector<Entry> entries = [] {
    std::vector<Entry> rows;
    // The lists are in the order of kMissing.
    for (const auto& list : lists) rows.push_back({list, kMissing[rows.size()].why});
    return rows;
  }();
  return entries;
}

std::string about_unknown_option(std::string_view option) {
  if (const auto* row = find_in(kMissing, option); row != nullptr) {
    return " is curl's, and deliberately missing here: " + std::string(row->why);
  }
  const auto* row = find_in(kUsualWords, option);
  return row == nullptr ? "" : " is unknown; did you mean " + std::string(row->why) + "?";
}

}  // namespace httpretry::cli
