#include "send/flags.hpp"

#include <algorithm>

namespace httpretry::cli {
namespace {

struct Missing {
  std::string_view options;  // with a blank before and after each
  std::string_view why;      // or what to use instead
};

constexpr Missing kMissing[] = {
    {" -a --append -B --use-ascii --compressed-ssh --crlf --disable-eprt --disable-epsv"
     " --ftp-account --ftp-alternative-to-user --ftp-create-dirs --ftp-method --ftp-pasv -P"
     " --ftp-port --ftp-pret --ftp-skip-pasv-ip --ftp-ssl-ccc --ftp-ssl-ccc-mode --ftp-ssl-control"
     " --hostpubmd5 --hostpubsha256 --krb -l --list-only --login-options --mail-auth --mail-from"
     " --mail-rcpt --mail-rcpt-allowfails --pubkey -Q --quote --sasl-authzid --sasl-ir --ssl"
     " --ssl-reqd -t --telnet-option --tftp-blksize --tftp-no-options ",
     "it is for protocols other than HTTP"},
    {" -0 --http1.0 --http0.9 --http3 --http3-only --alt-svc --hsts --raw --tr-encoding"
     " --haproxy-protocol ",
     "only HTTP/1.1 and HTTP/2 are sent, to the URL that is given"},
    {" -1 --tlsv1 --tlsv1.0 --tlsv1.1 -2 --sslv2 -3 --sslv3 --ssl-allow-beast ",
     "TLS before 1.2 is not safe"},
    {" --ciphers --curves --tls13-ciphers --tls-max --false-start --no-alpn --no-npn"
     " --no-sessionid --egd-file --random-file --engine --cert-status --crlfile --tlsauthtype"
     " --tlspassword --tlsuser --ssl-auto-client-cert --ssl-no-revoke --ssl-revoke-best-effort ",
     "libcurl's defaults of TLS are used"},
    {" --cert-type --key-type ", "a certificate is PEM, or PKCS #12 if its name ends in .p12"},
    {" --anyauth ", "name the scheme: --basic or --digest"},
    {" --negotiate --ntlm --ntlm-wb --delegation --service-name --aws-sigv4 ",
     "use --basic, --digest or --oauth2-bearer, or the header of your own with -H"},
    {" --proxy-anyauth --proxy-basic --proxy-digest --proxy-negotiate --proxy-ntlm"
     " --proxy-service-name --proxy-header --socks5-basic --socks5-gssapi --socks5-gssapi-nec"
     " --socks5-gssapi-service ",
     "a proxy gets the name and password of -U, with basic authentication"},
    {" --proxy-cacert --proxy-capath --proxy-cert --proxy-cert-type --proxy-ciphers "
     "--proxy-crlfile --proxy-insecure --proxy-key --proxy-key-type --proxy-pass "
     "--proxy-pinnedpubkey --proxy-ssl-allow-beast --proxy-ssl-auto-client-cert "
     "--proxy-tls13-ciphers --proxy-tlsauthtype --proxy-tlspassword --proxy-tlsuser --proxy-tlsv1 ",
     "an https proxy is reached with the same TLS as any server"},
    {" --preproxy --proxy1.0 -p --proxytunnel --socks4 --socks4a --socks5 --socks5-hostname ",
     "use -x with http://, https://, socks4://, socks4a://, socks5:// or socks5h://"},
    {" --dns-interface --dns-ipv4-addr --dns-ipv6-addr --dns-servers --doh-cert-status"
     " --doh-insecure --doh-url ",
     "the system looks up names; --resolve gives the address of one"},
    {" --local-port --keepalive-time --no-keepalive --tcp-fastopen --tcp-nodelay"
     " --happy-eyeballs-timeout-ms --abstract-unix-socket ",
     "libcurl's defaults of TCP are used; see --interface and --unix-socket"},
    {" --trace-ascii --trace-time --libcurl --styled-output ",
     "use --trace, -v or --report; they do not show secrets"},
    {" -Y --speed-limit -y --speed-time ",
     "--set stall_timeout=30s ends an attempt whose body pauses for so long"},
    {" --rate ", "the policy limits how often a request is sent, and --parallel-max how many"},
    {" --location-trusted ", "names and passwords are sent to the first origin only"},
    {" --post301 --post302 --post303 ",
     "a 301, 302 or 303 changes POST to GET, as browsers do; a 307 or 308 keeps it"},
    {" --etag-compare --etag-save ",
     "use -C - to continue a download, or -z FILE to ask for what is newer"},
    {" --netrc-optional ", "use -n, which is not an error without a file"},
    {" --data-ascii ", "use --data, which is the same"},
    {" --expect100-timeout ", "the body is sent after a second without a response"},
    {" --remove-on-error --no-clobber ",
     "a file is written aside and replaces the old one only when it is complete"},
    {" -R --remote-time --xattr --create-file-mode ",
     "a file has the time and the mode of any new file; the headers are in the file of -D"},
    {" --path-as-is --request-target --proto-default --disallow-username-in-url ",
     "the request is for the URL as it is written"},
    {" -j --junk-session-cookies ", "start with an empty -b file instead"},
    {" -: ", "write --next"},
    {" --parallel-immediate --ignore-content-length --suppress-connect-headers --form-escape"
     " --metalink -M --manual ",
     "there is nothing like it here; httpretry manual shows the manual"},
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

std::string about_unknown_option(std::string_view option) {
  if (const auto* row = find_in(kMissing, option); row != nullptr) {
    return " is curl's, and missing here on purpose: " + std::string(row->why);
  }
  const auto* row = find_in(kUsualWords, option);
  return row == nullptr ? "" : " is unknown; did you mean " + std::string(row->why) + "?";
}

}  // namespace httpretry::cli
