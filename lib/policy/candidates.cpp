// Which entries match a request, which nearly do, and why the others do not get it.
#include "lib/policy/policy_set_data.hpp"

#include <algorithm>

namespace httpretry {
namespace {

using namespace policy_file;

// An entry that says nothing of a part is compared as if it said "any". That is no text of the
// user's, so it is not told as such.
std::string why_less(const PolicySet::Data& data, const EndpointIndex::Match& loser,
                     const EndpointIndex::Match& winner) {
  auto why = EndpointIndex::why_less(loser, winner);
  const auto& pattern = data.entries[loser.pattern].pattern;
  if (!pattern.host && why.find("its host") != std::string::npos) return "it names no host";
  if (!pattern.path && why.find("its path") != std::string::npos) return "it names no path";
  return why;
}

// Compares the parts of a pattern with a request, one by one.
struct Comparison {
  [[nodiscard]] bool fits(EndpointPattern one) const {
    if (!one.host) one.host = "*";  // a pattern has at least one part
    return EndpointIndex({std::move(one)}).find(method, url, headers).has_value();
  }
  template <class Part>
  [[nodiscard]] bool fits(const EndpointPattern& pattern, Part EndpointPattern::*part) const {
    EndpointPattern one;
    one.*part = pattern.*part;
    return fits(std::move(one));
  }
  [[nodiscard]] bool fits_host(const EndpointPattern& pattern) const {
    EndpointPattern hosts;
    hosts.host = pattern.host;
    hosts.more_hosts = pattern.more_hosts;
    return fits(std::move(hosts));
  }

  std::string_view method;
  const Url& url;
  const Headers& headers;
};

std::string mismatch(const std::string& part, const std::string& written, std::string_view found) {
  return part + " " + one_line(written) + " does not match " + one_line(found);
}

// Adds what fails of the conditions on headers or on the query, but not what the request has there:
// it may be secret.
void add_conditions(std::vector<std::string>& failed, const Comparison& request,
                    const std::string& part, const EndpointPattern& pattern,
                    EndpointPattern::Conditions EndpointPattern::*conditions) {
  for (const auto& [name, value] : pattern.*conditions) {
    EndpointPattern one;
    (one.*conditions)[name] = value;
    if (request.fits(std::move(one))) continue;
    failed.push_back(part + " " + one_line(name + "=" + value) + " does not match the request");
  }
}

// What of a pattern does not fit: "port 8443 does not match 80". Each header and each item of the
// query counts.
std::vector<std::string> mismatches(const EndpointPattern& pattern, const Comparison& request) {
  const auto& url = request.url;
  std::vector<std::string> failed;
  if (!request.fits(pattern, &EndpointPattern::path)) {
    failed.push_back(mismatch("path", *pattern.path, url.path()));
  }
  if (!request.fits(pattern, &EndpointPattern::methods)) {
    const bool one = pattern.methods.size() == 1;
    std::string all = one ? "method" : "methods";
    for (const auto& method : pattern.methods) all += " " + method;
    failed.push_back(all + (one ? " does" : " do") + " not match " + one_line(request.method));
  }
  if (!request.fits(pattern, &EndpointPattern::port)) {
    failed.push_back(mismatch("port", std::to_string(*pattern.port), std::to_string(url.port())));
  }
  if (!request.fits(pattern, &EndpointPattern::scheme)) {
    failed.push_back(mismatch("scheme", *pattern.scheme, url.scheme()));
  }
  add_conditions(failed, request, "header", pattern, &EndpointPattern::headers);
  add_conditions(failed, request, "query", pattern, &EndpointPattern::query);
  return failed;
}

}  // namespace

std::vector<PolicySet::Candidate> PolicySet::candidates(std::string_view method, const Url& url,
                                                        const Headers& headers) const {
  std::vector<Candidate> candidates;
  const auto matches = data_->index.matches(method, url, headers);
  for (const auto& match : matches) {
    const auto& entry = data_->entries[match.pattern];
    const auto wins = &match == &matches.front();
    candidates.emplace_back(&entry.resolved, entry.source,
                            wins ? std::string() : why_less(*data_, match, matches.front()));
  }
  return candidates;
}

std::vector<PolicySet::Candidate> PolicySet::near_misses(std::string_view method, const Url& url,
                                                         const Headers& headers) const {
  std::size_t fewest = data_->index.find(method, url, headers) ? 1 : SIZE_MAX;
  std::vector<Candidate> misses;
  std::size_t of_path = 0;  // how many of the first have a path that fits
  const Comparison request{method, url, headers};
  for (const auto& entry : data_->entries) {
    if (!request.fits_host(entry.pattern)) continue;
    const auto failed = mismatches(entry.pattern, request);
    if (failed.empty() || failed.size() > fewest) continue;
    if (failed.size() < fewest) {
      fewest = failed.size();
      misses.clear();
      of_path = 0;
    }
    std::string why;
    for (const auto& one : failed) why += (why.empty() ? "" : "; ") + one;
    const bool path_fits = request.fits(entry.pattern, &EndpointPattern::path);
    const auto at = path_fits ? of_path++ : misses.size();
    misses.emplace(misses.begin() + static_cast<std::ptrdiff_t>(at), &entry.resolved, entry.source,
                   why);
  }
  return misses;
}

}  // namespace httpretry
