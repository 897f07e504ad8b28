#include <httpretry/policy/presets.hpp>

#include "policy_set_data.hpp"

#include <algorithm>
#include <deque>
#include <map>

namespace httpretry {
namespace {

// Returns all presets: `standard`, which is a default-constructed RetryPolicy, and those of
// presets.json. That file states a preset by its "changes" to another one, which "below" names, or
// to "base", which has the values of most presets. The changes are a JSON Merge Patch (RFC 7396). A
// null in "base" only gives a key its place in the order; a null in "changes" removes a key.
std::vector<Preset> read_presets() {
  using namespace policy_file;
  // A Preset has only views. Their texts live as long as the program.
  static auto* const texts = new std::deque<std::string>;
  const auto keep = [](const auto& text) { return std::string_view(texts->emplace_back(text)); };
  const RetryPolicy standard;
  std::vector<Preset> all{
      {"standard",
       "the default: equal jitter, five attempts within a minute, a retry budget per host",
       keep(json_text(write_object(kPolicy, &standard), /*levels=*/1))}};
  const auto file = OrderedJson::parse(presets_text());
  std::map<std::string, OrderedJson> merged{{"", file.at("base")}};  // by name, still with nulls
  for (const auto& preset : file.at("presets")) {
    const auto name = preset.at("name").get<std::string>();
    // Begins with a copy of the preset that "below" names, or of "base", which is stored as "".
    auto& json = merged[name] = merged.at(preset.value("below", ""));
    json.merge_patch(preset.at("changes"));
    auto stated = OrderedJson::object();
    stated.merge_patch(json);  // copies all members except nulls
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
