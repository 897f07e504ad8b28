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

// What of a pattern does not fit a request.
class Misfit {
 public:
  Misfit(const EndpointPattern& pattern, std::string_view method, const Url& url,
         const Headers& headers)
      : pattern_(pattern), method_(method), url_(url), headers_(headers) {
    EndpointPattern hosts;
    hosts.host = pattern.host;
    hosts.more_hosts = pattern.more_hosts;
    host_ = !fits(std::move(hosts));
    if (!host_) find_others();
  }

  [[nodiscard]] bool host() const { return host_; }
  [[nodiscard]] bool path() const { return path_; }
  // Conditions that fail; each header and each item of the query is one.
  [[nodiscard]] std::size_t count() const { return count_; }
  // "port 8443 does not match 80; scheme https does not match http".
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  void find_others() {
    path_ = !fits_with(&EndpointPattern::path);
    if (path_) add("path", *pattern_.path, url_.path());
    if (!fits_with(&EndpointPattern::methods)) add_methods();
    if (!fits_with(&EndpointPattern::port)) {
      add("port", std::to_string(*pattern_.port), std::to_string(url_.port()));
    }
    if (!fits_with(&EndpointPattern::scheme)) add("scheme", *pattern_.scheme, url_.scheme());
    add_conditions("header", &EndpointPattern::headers);
    add_conditions("query", &EndpointPattern::query);
  }

  void add(const std::string& what) {
    text_ += (text_.empty() ? "" : "; ") + what;
    ++count_;
  }
  void add(const std::string& part, const std::string& written, std::string_view found) {
    add(part + " " + one_line(written) + " does not match " + one_line(found));
  }
  void add_methods() {
    std::string all;
    for (const auto& one : pattern_.methods) all += " " + one;
    const auto* const words = pattern_.methods.size() == 1 ? "method" : "methods";
    add(words + all + (pattern_.methods.size() == 1 ? " does" : " do") + " not match " +
        one_line(method_));
  }
  // Not what the request has there: it may be secret.
  void add_conditions(const std::string& part,
                      EndpointPattern::Conditions EndpointPattern::*conditions) {
    for (const auto& [name, value] : pattern_.*conditions) {
      EndpointPattern one;
      (one.*conditions)[name] = value;
      if (fits(std::move(one))) continue;
      add(part + " " + one_line(name + "=" + value) + " does not match the request");
    }
  }

  [[nodiscard]] bool fits(EndpointPattern one) const {
    if (!one.host) one.host = "*";  // a pattern has at least one part
    return EndpointIndex({std::move(one)}).find(method_, url_, headers_).has_value();
  }
  template <class Part>
  [[nodiscard]] bool fits_with(Part EndpointPattern::*part) const {
    EndpointPattern one;
    one.*part = pattern_.*part;
    return fits(std::move(one));
  }

  const EndpointPattern& pattern_;
  std::string_view method_;
  const Url& url_;
  const Headers& headers_;
  bool host_ = false;
  bool path_ = false;
  std::size_t count_ = 0;
  std::string text_;
};

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
  for (const auto& entry : data_->entries) {
    const Misfit misfit(entry.pattern, method, url, headers);
    if (misfit.host() || misfit.count() == 0 || misfit.count() > fewest) continue;
    if (misfit.count() < fewest) {
      fewest = misfit.count();
      misses.clear();
      of_path = 0;
    }
    const auto at = misfit.path() ? misses.size() : of_path++;
    misses.emplace(misses.begin() + static_cast<std::ptrdiff_t>(at), &entry.resolved, entry.source,
                   misfit.text());
  }
  return misses;
}

}  // namespace httpretry
