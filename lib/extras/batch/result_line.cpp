// Reads back the lines of results and dead letters that this program (its LineJobs) has written.
#include "lib/core/base/text.hpp"
#include "line_jobs.hpp"

namespace httpretry::batch {
namespace {

bool is_object(const JsonTree& tree) {
  return tree.root != nullptr && tree.root->is(JsonNode::Type::Object);
}

}  // namespace

// Parses a line of the results, such as
//   {"id":"order-17","line":17,"run":"5f3a…","state":"done","stop_reason":"success",…}
// "run" is the token of the journal or queue to which the line belongs. "line" is the number of the
// job's line in the input. Returns nullopt if this program cannot have written the line, because
// "run" or "line" is missing, or "state" is neither "done" nor "dead".
std::optional<ResultLine> detail::read_result_line(std::string_view line) {
  JsonTree tree;
  Problems problems(/*file=*/"");  // no message shows them
  read_json(line, tree, problems);
  if (problems.failed() || !is_object(tree)) return std::nullopt;
  using Type = JsonNode::Type;
  // These return the value of a member, or an empty text or 0 if it is missing or of another type.
  const auto text_of = [&](std::string_view name, Type type) {
    const auto* const member = tree.root->member(name);
    return member != nullptr && member->is(type) ? member->text : std::string_view();
  };
  const auto number_of = [&](std::string_view name) {
    return to_number<std::uint64_t>(text_of(name, Type::Number)).value_or(0);
  };
  ResultLine result;
  result.token = text_of("run", Type::String);
  result.id = text_of("id", Type::String);
  result.input_line = number_of("line");
  // Other states are not final, and have no line in the results.
  const auto state = text_of("state", Type::String);
  const bool is_final = state == "done" || state == "dead";
  if (result.token.empty() || result.input_line == 0 || !is_final) return std::nullopt;
  result.end.state = state == "done" ? State::Done : State::Dead;
  result.end.status = static_cast<int>(number_of("status"));
  result.end.reason = text_of("stop_reason", Type::String);
  // "attempts" is an array with an object for each attempt.
  if (const auto* attempts = tree.root->member("attempts")) {
    result.end.attempts = static_cast<int>(attempts->children.size());
  }
  // The whole line, because whoever records this end writes the same bytes to the results again.
  result.end.result = std::string(line) + "\n";
  return result;
}

// line_with() writes the result as the last member of the object, named "last".
std::string detail::result_in_dead_letter(std::string_view line) {
  JsonTree tree;
  Problems problems(/*file=*/"");  // no message shows them
  read_json(line, tree, problems);
  if (!is_object(tree)) return {};
  const auto& members = tree.root->children;
  if (members.empty() || members.back()->key != "last") return {};
  const auto begin = static_cast<std::size_t>(members.back()->position.column - 1);
  return std::string(line.substr(begin, line.rfind('}') - begin));
}

}  // namespace httpretry::batch
