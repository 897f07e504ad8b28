// A file that is read again: what counts as a change, and what happens to the policies.
#include "tests/policy/temporary.hpp"

#include <httpretry/policy/policy_set.hpp>
#include <httpretry/policy/policy_source.hpp>

#include <doctest/doctest.h>

#include <sys/stat.h>
#include <string>

using namespace httpretry;
using namespace std::chrono_literals;

namespace {

std::string with_attempts(int attempts) {
  return R"({"version": 1, "default": {"max_attempts": )" + std::to_string(attempts) + "}}";
}

// A watched file and the clock that it is looked at by.
struct Watched {
  explicit Watched(std::string_view text) : file(text), source(open()) {}

  // What is in force a second after the last time it was asked.
  PolicySource::Current next() {
    now += 1s;
    return source.current(now);
  }
  int attempts() { return attempts_in(next().policies); }
  static int attempts_in(const PolicySet& set) {
    return set.find("GET", Url::parse("http://a/").value()).policy->max_attempts.value();
  }

  TemporaryFile file;
  PolicySource source;
  Time now{};

 private:
  [[nodiscard]] PolicySource open() const { return PolicySource::watch(file.path()).value(); }
};

std::string said(const PolicySource::Current& current) {
  if (!current.reload) return "nothing";
  std::string lines = current.reload->accepted ? "accepted" : "refused";
  for (const auto& problem : current.reload->problems) lines += "\n" + to_string(problem);
  return lines;
}

}  // namespace

TEST_CASE("a set is a source that never changes") {
  const PolicySource source = PolicySet();
  CHECK(source.current(Time()).policies == PolicySet());
  CHECK(source.current(Time()).reload == nullptr);
  CHECK(source.reload().value() == PolicySet());
}

TEST_CASE("a file that is bad at first is refused with its problems") {
  const TemporaryFile bad(R"({"version": 2})");
  CHECK(PolicySource::watch(bad.path()).error().message ==
        bad.path() + ":1:13: /version: 2 is not a version of this format: 1");
  bad.remove();
  CHECK(PolicySource::watch(bad.path()).error().message ==
        bad.path() + ": cannot be read: No such file or directory");
  CHECK(PolicySource::watch(bad.folder().string()).error().message ==
        bad.folder().string() + ": cannot be read: it is not a regular file");
}

TEST_CASE("a folder is no policy file") {
  const TemporaryFile file;
  CHECK(PolicySet::load(file.folder().string()).error().message ==
        "cannot read the policy file " + file.folder().string() + ": Is a directory");
}

TEST_CASE("a pipe is refused, and not waited for") {
  const TemporaryFile pipe;
  REQUIRE(mkfifo(pipe.path().c_str(), 0600) == 0);
  CHECK(PolicySource::watch(pipe.path()).error().message ==
        pipe.path() + ": cannot be read: it is not a regular file");
}

TEST_CASE("a changed file counts after a second, however it was changed") {
  Watched watched(with_attempts(2));
  CHECK(watched.attempts() == 2);
  CHECK(said(watched.source.current(watched.now)) == "nothing");

  watched.file.write(with_attempts(3));
  CHECK(Watched::attempts_in(watched.source.current(watched.now + 999ms).policies) == 2);
  CHECK(watched.attempts() == 3);
  watched.file.replace(with_attempts(4));
  CHECK(watched.attempts() == 4);
  watched.file.remove();
  watched.file.write(with_attempts(5));
  CHECK(watched.attempts() == 5);
  const auto current = watched.next();
  CHECK(said(current) == "accepted");
  CHECK(current.reload->number == 3);
  CHECK(current.reload->file == watched.file.path());
}

TEST_CASE("a link that is turned to another file is a changed file") {
  Watched watched(with_attempts(2));
  std::filesystem::rename(watched.file.path(), watched.file.folder() / "first");
  std::filesystem::create_symlink("first", watched.file.path());
  CHECK(watched.attempts() == 2);
  std::ofstream(watched.file.folder() / "second") << with_attempts(3);
  std::filesystem::create_symlink("second", watched.file.folder() / "link");
  std::filesystem::rename(watched.file.folder() / "link", watched.file.path());
  CHECK(watched.attempts() == 3);
}

TEST_CASE("a relative path keeps its file when the working directory changes") {
  const TemporaryFile file(with_attempts(2));
  const TemporaryFile elsewhere(with_attempts(4));
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(file.folder());
  const auto source = PolicySource::watch("policy.json");
  std::filesystem::current_path(elsewhere.folder());
  file.write(with_attempts(3));
  const auto reloaded = source.value().reload();
  std::filesystem::current_path(before);
  CHECK(Watched::attempts_in(reloaded.value()) == 3);
  CHECK(source.value().current(Time()).reload->file == "policy.json");
}

TEST_CASE("a bad file changes nothing, is told once, and is forgotten when it is good again") {
  Watched watched(with_attempts(2));
  watched.file.write(R"({"version": 1, "default": {"max_attemps": 3}})");
  auto current = watched.next();
  CHECK(Watched::attempts_in(current.policies) == 2);
  CHECK(said(current) == "refused\n" + watched.file.path() +
                             ":1:28: /default/max_attemps: unknown key; did you mean "
                             "\"max_attempts\"?");
  CHECK(watched.next().reload->number == 1);
  CHECK(watched.next().reload->number == 1);

  watched.file.write(with_attempts(3));
  current = watched.next();
  CHECK(Watched::attempts_in(current.policies) == 3);
  CHECK(said(current) == "accepted");
}

TEST_CASE("a file that is half written is refused, and read when it is whole") {
  Watched watched(with_attempts(2));
  const auto whole = with_attempts(3);
  watched.file.write("");
  CHECK(watched.attempts() == 2);
  watched.file.write(whole.substr(0, 20));
  CHECK(watched.attempts() == 2);
  watched.file.write(whole);
  CHECK(watched.attempts() == 3);
}

TEST_CASE("a file that is gone changes nothing, and counts when it is back, changed or not") {
  Watched watched(with_attempts(2));
  CHECK(watched.attempts() == 2);
  watched.file.remove();
  auto current = watched.next();
  CHECK(Watched::attempts_in(current.policies) == 2);
  CHECK(said(current) ==
        "refused\n" + watched.file.path() + ": cannot be read: No such file or directory");
  CHECK(watched.next().reload->number == 1);
  CHECK(watched.next().reload->number == 1);

  watched.file.write(with_attempts(2));
  CHECK(said(watched.next()) == "accepted");
  watched.file.remove();
  CHECK(said(watched.next()).substr(0, 7) == "refused");
  watched.file.write(with_attempts(4));
  CHECK(watched.attempts() == 4);
}

TEST_CASE("a file that is touched, or written again with the same text, is no news") {
  Watched watched(with_attempts(2));
  CHECK(watched.attempts() == 2);
  watched.file.write(with_attempts(2));
  CHECK(said(watched.next()) == "nothing");
  watched.file.replace(with_attempts(2));
  CHECK(said(watched.next()) == "nothing");
}

TEST_CASE("a text that came within the same tick of the file's clock is seen at the next look") {
  Watched watched(with_attempts(2));
  for (auto attempts = 3; attempts < 10; ++attempts) {
    watched.file.write(with_attempts(attempts - 1));
    (void)watched.next();
    watched.file.write(with_attempts(attempts));  // at once: the same size, and the same time
    CHECK(watched.attempts() == attempts);
  }
}

TEST_CASE("reload reads at once, changed or not, and says what is wrong") {
  const Watched watched(with_attempts(2));
  CHECK(Watched::attempts_in(watched.source.reload().value()) == 2);
  watched.file.write(with_attempts(3));
  CHECK(Watched::attempts_in(watched.source.reload().value()) == 3);
  CHECK(Watched::attempts_in(watched.source.current(Time()).policies) == 3);
  watched.file.write("{}");
  CHECK(watched.source.reload().error().message ==
        watched.file.path() + ":1:1: missing key \"version\": this is version 1");
  CHECK(Watched::attempts_in(watched.source.current(Time()).policies) == 3);
  watched.file.remove();
  CHECK(watched.source.reload().error().message ==
        watched.file.path() + ": cannot be read: No such file or directory");
  CHECK(said(watched.source.current(Time())).substr(0, 7) == "refused");
}

TEST_CASE("copies of a source watch the same, and what was handed out stays as it was") {
  Watched watched(with_attempts(2));
  const auto copy = watched.source;
  const auto before = copy.current(Time()).policies;
  watched.file.write(with_attempts(3));
  CHECK(watched.attempts() == 3);
  CHECK(Watched::attempts_in(copy.current(Time()).policies) == 3);
  CHECK(Watched::attempts_in(before) == 2);
}

TEST_CASE("what can never matter in a file is told when it is accepted") {
  Watched watched(with_attempts(2));
  watched.file.write(
      R"({"version": 1, "default": {"max_elapsed_time": "1s", "server_delay": {"max": "2s"}}})");
  CHECK(said(watched.next())
            .find("accepted\n" + watched.file.path() +
                  ":1:78: warning: /default/server_delay/max") == 0);
}
