#include <httpretry/policy/presets.hpp>

#include "policy_set_data.hpp"

#include <algorithm>
#include <deque>
#include <map>

namespace httpretry {
namespace {

// The presets of presets.json. Each of its "changes" is merged (RFC 7396) into the preset that
// "below" names, or into "base": the values that most presets set, and the order of the keys. Keys
// that a preset leaves out are null there.
std::vector<Preset> read_presets() {
  using namespace policy_file;
  static auto* const texts = new std::deque<std::string>;  // lives as long as the program
  const auto keep = [](const auto& text) { return std::string_view(texts->emplace_back(text)); };
  // `standard` has the numbers of a default-constructed RetryPolicy.
  const RetryPolicy standard;
  std::vector<Preset> all{
      {"standard",
       "the default: equal jitter, five attempts within a minute, a retry budget per host",
       keep(json_text(write_object(kPolicy, &standard), /*levels=*/1))}};
  const auto file = OrderedJson::parse(presets_text());
  std::map<std::string, OrderedJson> merged{{"", file.at("base")}};  // by name, with nulls
  for (const auto& preset : file.at("presets")) {
    const auto name = preset.at("name").get<std::string>();
    auto& json = merged[name] = merged.at(preset.value("below", ""));
    json.merge_patch(preset.at("changes"));
    auto stated = OrderedJson::object();
    stated.merge_patch(json);  // leaves out nulls
    all.push_back({keep(name), keep(preset.at("description").get<std::string>()),
                   keep(json_text(stated, /*levels=*/1))});
  }
  return all;
}

}  // namespace

std::span<const Preset> presets() {
  static const auto* const list = new std::vector<Preset>(read_presets());
  return *list;
}

const Preset* find_preset(std::string_view name) {
  const auto all = presets();
  const auto found = std::ranges::find(all, name, &Preset::name);
  return found == all.end() ? nullptr : &*found;
}

}  // namespace httpretry
