#include "lib/extras/batch/text.hpp"
#include "tests/batch/journal_files.hpp"

#include <httpretry/batch/batch.hpp>

#include <doctest/doctest.h>

#include <sys/stat.h>

#include <filesystem>

using namespace httpretry;
using namespace httpretry::batch;
using namespace std::chrono_literals;

namespace {

constexpr const char* kPut = "remove everything from there on, and run the same command again";

Job take_one(Journal& journal) {
  auto jobs = take(journal, 1);
  REQUIRE(jobs.size() == 1);
  return std::move(jobs.front());
}

void finish_all(Journal& journal, std::size_t count) {
  for (const auto& job : take(journal, count)) {
    journal.finish(job, end_of(journal, job, State::Done));
  }
  journal.commit();
}

}  // namespace

TEST_CASE("a state that does not exist has no word") {
  CHECK(to_string(State::Queued) == "queued");
  CHECK(to_string(State::Unknown) == "unknown");
  CHECK(to_string(static_cast<State>(99)) == "?");
}

TEST_CASE("jobs come in the order of the input, and those of high priority first") {
  JournalFiles files;
  files.folder.write("in", R"(http://a/1
{"url":"http://a/2","priority":"low"}
{"url":"http://a/3","priority":"high"}
http://a/4
{"url":"http://a/5","priority":"high"}
)");
  const auto journal = files.open();
  std::vector<std::uint64_t> numbers;
  for (const auto& job : take(*journal, 10)) numbers.push_back(job.number);
  CHECK(numbers == std::vector<std::uint64_t>{3, 5, 1, 4, 2});
}

TEST_CASE("a host with many jobs does not keep those of another from being taken") {
  JournalFiles files;
  files.input_of(1000);
  files.folder.append("in", "http://b/\n");
  const auto journal = files.open();
  const auto jobs = take(*journal, 64);
  CHECK(std::ranges::any_of(jobs, [](const Job& job) { return job.host == "http://b"; }));
  CHECK(jobs.size() > 8);
}

TEST_CASE("a job that was given back is taken again, once") {
  JournalFiles files;
  files.input_of(3);
  const auto journal = files.open();
  const auto first = take(*journal, 2);
  journal->give_back(first[0]);
  const auto again = take(*journal, 9);
  REQUIRE(again.size() == 2);
  CHECK(again[0].number == 1);
  CHECK(again[1].number == 3);
  CHECK(take(*journal, 9).empty());
}

TEST_CASE("a wait ends when its time has passed, also in the next run") {
  JournalFiles files;
  files.input_of(1);
  auto journal = files.open();
  journal->wait(take_one(*journal), 1h, 3, "503");
  journal->commit();
  CHECK(take(*journal, 1).empty());
  CHECK(journal->next_due() == 1h);
  journal.reset();
  files.pass(59min);
  journal = files.open();
  CHECK(journal->counts().waiting == 1);
  CHECK(journal->next_due() == 1min);
  files.pass(1min);
  const auto job = take_one(*journal);
  CHECK(job.attempts == 3);
}

TEST_CASE("a job that is given back before its send is due now, whenever the next look is") {
  for (const bool look_before_commit : {false, true}) {
    CAPTURE(look_before_commit);
    JournalFiles files;
    files.input_of(1);
    const auto journal = files.open();
    const auto job = take_one(*journal);
    const Job* const jobs[] = {&job};
    journal->intend(jobs);
    files.pass(2ms);
    CHECK(take(*journal, 1).empty());
    journal->give_back(job);
    files.pass(2ms);
    if (look_before_commit) CHECK(take(*journal, 1).empty());
    journal->commit();
    CHECK(journal->next_due() == 0ms);
    CHECK(take(*journal, 1).size() == 1);
    CHECK_FALSE(journal->next_due());
  }
}

TEST_CASE("a wait that has ended since the last look is due now") {
  JournalFiles files;
  files.input_of(1);
  const auto journal = files.open();
  journal->wait(take_one(*journal), 1ms, 1, "503");
  journal->commit();
  CHECK(take(*journal, 1).empty());
  files.pass(2ms);
  CHECK(journal->next_due() == 0ms);
  CHECK(take(*journal, 1).size() == 1);
}

TEST_CASE("due jobs of a host that is not wanted do not keep those of another from being taken" *
          doctest::test_suite("large")) {
  JournalFiles files;
  const std::string job_of_a = R"({"url":"http://a/","not_before":"2027-01-01T00:00:00Z"})";
  std::string text;
  for (int i = 0; i < 25'000; ++i) text += job_of_a + "\n";
  files.folder.write("in", text + R"({"url":"http://b/","not_before":"2027-01-02T00:00:00Z"})");
  const auto journal = files.open();
  const auto wants_b = [](std::string_view host) { return host == "http://b"; };
  std::vector<Job> jobs;
  for (int i = 0; i < 3; ++i) {
    CHECK(jobs.empty());
    journal->take(/*most=*/9, wants_b, jobs);
    // The first two calls give up before they have read all due jobs.
    CHECK(journal->next_due().has_value() == (i < 2));
  }
  REQUIRE(jobs.size() == 1);
  CHECK(jobs[0].host == "http://b");
  // The next one begins with the first job again.
  CHECK(take_one(*journal).number == 1);
}

TEST_CASE("a wait does not change with the wall clock, and not_before does") {
  JournalFiles files;
  files.folder.write("in", R"({"url":"http://a/","not_before":"2027-01-15T09:00:00Z"}
{"url":"http://a/2"}
)");
  auto journal = files.open();
  CHECK(journal->next_due() == 1h);
  journal->wait(take_one(*journal), 2h, 1, "busy");
  files.wall -= 1h;  // somebody sets the clock
  journal->commit();
  CHECK(journal->next_due() == 2h);  // both
  files.pass(2h);
  CHECK(take(*journal, 9).size() == 2);

  files.wall += 1000h;
  CHECK(take(*journal, 9).empty());
}

TEST_CASE("a clock that jumps forward does not end a wait of this run") {
  JournalFiles files;
  files.input_of(1);
  const auto journal = files.open();
  journal->wait(take_one(*journal), 1h, 1, "busy");
  journal->commit();
  files.wall += 5h;
  CHECK(take(*journal, 1).empty());
  files.pass(1h);
  CHECK(take(*journal, 1).size() == 1);
}

TEST_CASE("a host that asked for a wait is held in the next run, too") {
  JournalFiles files;
  files.input_of(1);
  auto journal = files.open();
  journal->hold("http://a", 10min);
  journal->commit();
  journal.reset();
  files.pass(4min);
  journal = files.open();
  auto held = journal->holds();
  REQUIRE(held.size() == 1);
  CHECK(held.front().host == "http://a");
  CHECK(held.front().time == 6min);
  files.wall += 100h;  // set
  journal->hold("http://a", 7min);
  journal->commit();
  held = journal->holds();
  REQUIRE(held.size() == 1);
  CHECK(held.front().time == 7min);
  files.pass(7min);
  CHECK(journal->holds().empty());
}

TEST_CASE("keys that are made stay the same, and are in no other journal") {
  JournalFiles files;
  files.folder.write("in", R"({"url":"http://a/","key":true,"body":"x"}
{"url":"http://a/","key":"own","body":"x"}
{"url":"http://a/","body":"x"}
)");
  auto journal = files.open();
  const auto jobs = take(*journal, 3);
  CHECK(jobs[0].key.size() == 32);
  CHECK(jobs[1].key == "own");
  CHECK(jobs[2].key.empty());
  journal.reset();
  journal = files.open();
  CHECK(take_one(*journal).key == jobs[0].key);
  journal.reset();
  std::filesystem::remove(files.folder / "j.db");
  CHECK(take_one(*files.open()).key != jobs[0].key);
}

TEST_CASE("a job that may have been sent says since when") {
  JournalFiles files;
  files.input_of(2);
  auto journal = files.open();
  const auto began = files.wall;
  CHECK_FALSE(take_one(*journal).maybe_sent_since.has_value());
  journal.reset();
  files.pass(3h);
  files.input_of(1, 3);
  journal = files.open();
  const auto jobs = take(*journal, 3);
  REQUIRE(jobs.size() == 3);
  CHECK(jobs[0].maybe_sent_since == began);
  CHECK(jobs[1].maybe_sent_since == began);
  CHECK_FALSE(jobs[2].maybe_sent_since.has_value());  // it was not there then
}

TEST_CASE("whole lines at the end of the results are taken over, and half a line is cut") {
  JournalFiles files;
  files.input_of(4);
  auto journal = files.open();
  finish_all(*journal, 1);
  const auto second = result_line(*journal, 2, State::Done);
  const auto third = result_line(*journal, 3, State::Dead);
  journal.reset();
  files.folder.append("results", second + third + second.substr(0, 20));
  journal = files.open();
  REQUIRE(journal != nullptr);
  CHECK(journal->counts().done == 2);
  CHECK(journal->counts().dead == 1);
  CHECK(journal->counts().queued == 1);
  CHECK(files.folder.lines("results").size() == 3);
  CHECK(files.folder.read("results").ends_with(third));
  // What died has its dead letter, which the crash had kept from being written.
  REQUIRE(files.folder.lines("dead").size() == 1);
  CHECK(files.folder.lines("dead").front().starts_with(R"({"id":"3","url":"http://a/3","last":{)"));
  CHECK(take(*journal, 9).size() == 1);
}

TEST_CASE("a dead letter without its results line is taken over, too") {
  JournalFiles files;
  files.input_of(2);
  auto journal = files.open();
  const auto job = take_one(*journal);
  const auto end = end_of(*journal, job, State::Dead);
  journal.reset();
  files.folder.append("dead", end.dead_letter);
  journal = files.open();
  CHECK(journal->counts().dead == 1);
  CHECK(files.folder.read("dead") == end.dead_letter);
  CHECK(files.folder.read("results") == end.result);
}

TEST_CASE("what this journal did not write is refused with its place, and nothing is changed") {
  for (const char* const name : {"results", "dead"}) {
    CAPTURE(name);
    JournalFiles files;
    files.input_of(2);
    auto journal = files.open();
    finish_all(*journal, 1);
    journal.reset();
    const auto before = files.folder.read(name);
    const auto offset = "at byte " + std::to_string(before.size());
    files.folder.append(name, "{\"id\":\"2\",\"line\":2,\"run\":\"another\",\"state\":\"done\"}\n");
    const auto foreign = files.folder.read(name);
    CHECK_THROWS_WITH_AS(files.open(), doctest::Contains(offset.c_str()), StoreError);
    CHECK_THROWS_WITH_AS(files.open(), doctest::Contains("a line that this journal did not write"),
                         StoreError);
    CHECK_THROWS_WITH_AS(files.open(), doctest::Contains(kPut), StoreError);
    CHECK(files.folder.read(name) == foreign);
    files.folder.write(name, before);
    CHECK(files.open()->counts().done == 1);
  }
}

TEST_CASE("a second line about a job is refused with its place") {
  JournalFiles files;
  files.input_of(3);
  auto journal = files.open();
  finish_all(*journal, 1);
  const auto first = result_line(*journal, 1, State::Done);
  const auto second = result_line(*journal, 2, State::Done);
  const auto missing = result_line(*journal, 9, State::Done);
  journal.reset();
  const auto before = files.folder.read("results");
  const std::pair<std::string, std::size_t> bads[] = {
      {first, 0}, {second + second, second.size()}, {missing, 0}};
  for (const auto& [bad, at] : bads) {
    files.folder.write("results", before + bad);
    const auto offset = "at byte " + std::to_string(before.size() + at) + " there is a second line";
    CHECK_THROWS_WITH_AS(files.open(), doctest::Contains(offset.c_str()), StoreError);
  }
}

TEST_CASE("results that were cut are refused") {
  JournalFiles files;
  files.input_of(2);
  auto journal = files.open();
  finish_all(*journal, 2);
  journal.reset();
  const auto all = files.folder.read("results");
  files.folder.write("results", all.substr(0, all.size() - 1));
  CHECK_THROWS_WITH_AS(files.open(), doctest::Contains("it was truncated. Put it back as it was"),
                       StoreError);
  std::filesystem::remove(files.folder / "results");
  CHECK_THROWS_WITH_AS(files.open(), doctest::Contains("it was truncated"), StoreError);
}

TEST_CASE("results go into a regular file only") {
  JournalFiles files;
  files.input_of(1);
  std::filesystem::create_symlink("/dev/null", files.folder / "results");
  CHECK_THROWS_WITH_AS(files.open(), doctest::Contains("is not a regular file"), StoreError);
}

TEST_CASE("files that are removed, replaced or shortened in a run end it, also at its end") {
  for (const char* const name : {"results", "dead", "j.db"}) {
    CAPTURE(name);
    JournalFiles files;
    files.input_of(2);
    auto journal = files.open();
    const auto job = take_one(*journal);
    journal->finish(job, end_of(*journal, job, State::Dead));
    journal->commit();
    const auto path = files.folder / name;
    const auto expect = [&](const char* why) {
      CHECK_THROWS_WITH_AS(journal->commit(), doctest::Contains(why), StoreError);
      CHECK_THROWS_WITH_AS(finish_all(*journal, 1), doctest::Contains(why), StoreError);
    };
    std::filesystem::rename(path, path + ".aside");
    expect("was removed while it was being written");
    files.folder.write(name, files.folder.read(name + std::string(".aside")));
    expect("was replaced while it was being written");
    std::filesystem::rename(path + ".aside", path);
    std::filesystem::resize_file(path, std::filesystem::file_size(path) - 1);
    expect("was truncated while it was being written");
  }
}

TEST_CASE("results and dead letters are written by one run at a time, under all of their names") {
  for (const char* const name : {"results", "dead"}) {
    CAPTURE(name);
    JournalFiles one;
    JournalFiles other;
    one.input_of(1);
    other.input_of(1);
    auto journal = one.open();
    std::filesystem::create_hard_link(one.folder / name, other.folder / name);
    CHECK_THROWS_WITH_AS(other.open(), doctest::Contains("is being written by another run"),
                         StoreError);
    journal.reset();
    CHECK(other.open() != nullptr);
  }
}

TEST_CASE("a journal with two names is refused, since its log is found by name") {
  JournalFiles files;
  files.input_of(1);
  REQUIRE(files.open() != nullptr);
  const auto other = files.folder / "other.db";
  std::filesystem::create_hard_link(files.folder / "j.db", other);
  CHECK_THROWS_WITH_AS(files.open(), doctest::Contains("has 2 names (hard links)"), StoreError);
  CHECK_THROWS_WITH_AS(static_cast<void>(read_status(other)), doctest::Contains("has 2 names"),
                       StoreError);
  std::filesystem::remove(other);
  CHECK(files.open() != nullptr);
}

TEST_CASE("a body that another program has moved away does not end the run") {
  JournalFiles files;
  files.survives_power_loss = true;
  files.input_of(2);
  const auto journal = files.open();
  const auto job = take_one(*journal);
  auto end = end_of(*journal, job, State::Done);
  end.body_file = files.folder / "moved";
  journal->finish(job, std::move(end));
  CHECK_NOTHROW(journal->commit());
  CHECK(files.folder.lines("results").size() == 1);
  const auto other = take_one(*journal);
  end = end_of(*journal, other, State::Done);
  end.body_file = files.folder / "results/body";  // "results" is no directory
  journal->finish(other, std::move(end));
  CHECK_THROWS_WITH_AS(journal->commit(), doctest::Contains("durable"), StoreError);
}

TEST_CASE("a damaged journal is an error") {
  for (const char* const damage :
       {"UPDATE state SET state = 7", "UPDATE state SET state = -1", "UPDATE lane SET priority = 3",
        "UPDATE lane SET priority = -1"}) {
    CAPTURE(damage);
    JournalFiles files;
    files.input_of(1);
    finish_all(*files.open(), 1);
    open_database(files.folder / "j.db", Database::Mode::Write)->execute(damage);
    CHECK_THROWS_WITH_AS(files.open(), doctest::Contains("damaged"), StoreError);
  }
}

TEST_CASE("a new journal ignores the log of one that was removed") {
  JournalFiles files;
  files.input_of(3);
  auto journal = files.open();
  finish_all(*journal, 2);
  const auto log = files.folder.read("j.db-wal");
  REQUIRE_FALSE(log.empty());
  journal.reset();
  for (const char* const name : {"j.db", "results", "dead"}) {
    std::filesystem::remove(files.folder / name);
  }
  files.folder.write("j.db-wal", log);  // as after a crash
  journal = files.open();
  REQUIRE(journal != nullptr);
  CHECK(journal->counts().queued == 3);
  CHECK(take(*journal, 9).size() == 3);
}

TEST_CASE("files that a run creates can be read only by their owner, and others keep their mode") {
  const auto owner = std::filesystem::perms::owner_read | std::filesystem::perms::owner_write;
  const auto group = owner | std::filesystem::perms::group_read;
  const auto mode_of = [](const std::string& path) {
    return std::filesystem::status(path).permissions();
  };
  JournalFiles files;
  files.input_of(2);
  const auto before = ::umask(0);
  auto journal = files.open();
  finish_all(*journal, 1);
  for (const char* const name : {"j.db", "j.db-wal", "j.db-shm", "j.db-lock", "results", "dead"}) {
    CAPTURE(name);
    CHECK(mode_of(files.folder / name) == owner);
  }
  journal.reset();
  for (const char* const name : {"j.db", "results", "dead"}) {
    std::filesystem::permissions(files.folder / name, group);
  }
  journal = files.open();
  finish_all(*journal, 1);
  ::umask(before);
  for (const char* const name : {"j.db", "j.db-wal", "j.db-shm", "results", "dead"}) {
    CAPTURE(name);
    CHECK(mode_of(files.folder / name) == group);
  }
}

TEST_CASE("an unknown job has no results line, and one when it is resolved") {
  JournalFiles files;
  files.input_of(1);
  auto journal = files.open();
  auto job = take_one(*journal);
  const Job* const jobs[] = {&job};
  journal->intend(jobs);
  journal.reset();  // a crash
  journal = files.open();
  CHECK(journal->counts().unknown == 1);
  CHECK(take(*journal, 1).empty());
  CHECK(files.folder.read("results").empty());
  std::vector<std::string> unknown;
  export_jobs(files.folder / "j.db", State::Unknown,
              [&](std::string_view line) { unknown.emplace_back(line); });
  CHECK(unknown == std::vector<std::string>{R"({"id":"1","url":"http://a/1"})"});
  const auto story = read_job(files.folder / "j.db", "1");
  CHECK(story->about.find("--retry-unknown") != std::string::npos);

  journal.reset();
  files.retry_unknown = true;
  journal = files.open();
  finish_all(*journal, 1);
  CHECK(files.folder.lines("results").size() == 1);
  CHECK(journal->counts().unknown == 0);
}

TEST_CASE("a journal of another version is refused") {
  JournalFiles files;
  files.input_of(1);
  REQUIRE(files.open() != nullptr);
  Database(files.folder / "j.db", Database::Mode::Write).execute("PRAGMA user_version = 7");
  CHECK_THROWS_WITH_AS(files.open(), doctest::Contains("is a journal of version 7"), StoreError);
}

TEST_CASE("the tables of a journal are strict and marked as ours") {
  JournalFiles files;
  files.input_of(1);
  REQUIRE(files.open() != nullptr);
  const Database database(files.folder / "j.db", Database::Mode::Read);
  CHECK(database.number("PRAGMA application_id") == kApplicationId);
  CHECK(database.number("PRAGMA user_version") == kJournalVersion);
  CHECK(
      database.number("SELECT count(*) FROM pragma_table_list WHERE strict = 0 AND schema = 'main' "
                      "AND name NOT LIKE 'sqlite%'") == 0);
  auto mode = database.prepare("PRAGMA journal_mode");
  REQUIRE(mode.step());
  CHECK(mode.text(0) == "wal");
}

TEST_CASE(
    "a clock that is set moves the waits, and one that drifts by less than half a second none") {
  for (const auto change : {-500ms, -499ms, 499ms, 500ms}) {
    CAPTURE(change.count());
    JournalFiles files;
    files.input_of(1);
    const auto journal = files.open();
    journal->wait(take_one(*journal), 1h, 1, "busy");
    journal->commit();
    files.wall += change;
    const bool is_set = change == -500ms || change == 500ms;
    CHECK(journal->next_due() == (is_set ? Duration(1h) : Duration(1h) - change));
  }
}

TEST_CASE("a clock that is set does not change a pause that is not committed yet") {
  JournalFiles files;
  files.input_of(1);
  const auto journal = files.open();
  journal->hold("http://a", 10min);
  files.wall += 1h;
  journal->commit();
  const auto held = journal->holds();
  REQUIRE(held.size() == 1);
  CHECK(held.front().time == 10min);
}

TEST_CASE("the hosts of a priority share the jobs that are taken, at most 64 of each host") {
  JournalFiles files;
  files.folder.write("in", "{\"url\":\"http://a/\",\"priority\":\"high\"}\n");
  files.input_of(1000);
  files.folder.append("in", "http://b/\n");
  const auto journal = files.open();
  auto jobs = take(*journal, 64);
  REQUIRE(jobs.size() == 34);
  CHECK(jobs[0].number == 1);
  CHECK(jobs[1].number == 2);
  CHECK(jobs[32].number == 33);
  CHECK(jobs[33].host == "http://b");
  jobs = take(*journal, 64);
  REQUIRE(jobs.size() == 64);
  CHECK(jobs.front().number == 34);
  CHECK(jobs.back().number == 97);
  jobs = take(*journal, 1000);
  REQUIRE(jobs.size() == 64);
  CHECK(jobs.back().number == 161);
}

TEST_CASE("four jobs or more of a host are taken at once, and each time another host is first") {
  JournalFiles files;
  std::string text;
  for (int host = 0; host < 30; ++host) {
    for (int i = 0; i < 5; ++i) text += "http://h" + std::to_string(host) + "/\n";
  }
  files.folder.write("in", text);
  const auto journal = files.open();
  auto jobs = take(*journal, 64);
  REQUIRE(jobs.size() == 64);
  CHECK(jobs[3].host == "http://h0");
  CHECK(jobs[4].host == "http://h1");
  CHECK(jobs[63].host == "http://h15");
  jobs = take(*journal, 64);
  REQUIRE_FALSE(jobs.empty());
  CHECK(jobs[0].host == "http://h1");
  CHECK(jobs[0].number == 10);
}

TEST_CASE("a commit writes the states of any number of jobs") {
  for (const std::size_t count : {1U, 15U, 16U, 17U, 32U, 33U}) {
    CAPTURE(count);
    JournalFiles files;
    files.input_of(count);
    auto journal = files.open();
    finish_all(*journal, count);
    journal.reset();
    journal = files.open();
    CHECK(journal->counts().done == count);
    CHECK(journal->counts().queued == 0);
    CHECK(files.folder.lines("results").size() == count);
    const auto story = read_job(files.folder / "j.db", std::to_string(count));
    REQUIRE(story.has_value());
    CHECK(story->status == 200);
    CHECK(story->attempts == 1);
    CHECK(story->result + "\n" == result_line(*journal, count, State::Done));
  }
}

TEST_CASE("the reason of a failed job is kept, and that of a success is not") {
  JournalFiles files;
  files.input_of(2);
  const auto journal = files.open();
  for (const auto& job : take(*journal, 2)) {
    auto end = end_of(*journal, job, job.number == 1 ? State::Done : State::Dead);
    end.status = job.number == 1 ? 200 : 0;
    end.reason = "word";
    end.about = "a sentence";
    journal->finish(job, std::move(end));
  }
  journal->commit();
  const auto done = read_job(files.folder / "j.db", "1");
  const auto dead = read_job(files.folder / "j.db", "2");
  REQUIRE((done.has_value() && dead.has_value()));
  CHECK(done->reason.empty());
  CHECK(done->about.empty());
  CHECK(dead->reason == "word");
  CHECK(dead->about == "a sentence");
  CHECK(dead->status == 0);
  CHECK_FALSE(dead->until.has_value());
  CHECK_FALSE(dead->started.has_value());
  CHECK_FALSE(read_job(files.folder / "j.db", "3").has_value());
  CHECK_FALSE(read_job(files.folder / "j.db", "01").has_value());
}

TEST_CASE("a journal prints its jobs by state, with their ids and keys") {
  JournalFiles files;
  const std::string own = R"({"id":"x","url":"http://a/","key":"k"})";
  files.folder.write("in", R"({"url":"http://a/","key":true})"
                           "\n" +
                               own +
                               "\nhttp://a/3\n"
                               R"({"url":"http://a/4","not_before":"2027-01-15T09:00:00Z"})");
  const auto path = files.folder / "j.db";
  const auto journal = files.open();
  const auto made = made_key(journal->token(), 1);
  const auto jobs_in = [&path](State state) {
    std::vector<std::string> lines;
    export_jobs(path, state, [&lines](std::string_view line) { lines.emplace_back(line); });
    return lines;
  };
  CHECK(jobs_in(State::Queued) ==
        std::vector<std::string>{R"({"id":"1","url":"http://a/","key":")" + made + "\"}", own,
                                 R"({"id":"3","url":"http://a/3"})"});
  CHECK(jobs_in(State::Waiting) ==
        std::vector<std::string>{
            R"({"id":"4","url":"http://a/4","not_before":"2027-01-15T09:00:00Z"})"});
  for (const auto state : {State::Sending, State::Done, State::Dead, State::Unknown}) {
    CHECK(jobs_in(state).empty());
  }
  const auto first = read_job(path, "1");
  const auto named = read_job(path, "x");
  const auto later_job = read_job(path, "4");
  REQUIRE((first.has_value() && named.has_value() && later_job.has_value()));
  CHECK(first->key == made);
  CHECK(first->state == State::Queued);
  CHECK(named->line == 2);
  CHECK(named->key == "k");
  CHECK(named->input == own);
  CHECK(named->attempts == 0);
  CHECK(later_job->key.empty());
  CHECK(later_job->state == State::Waiting);
  const auto date = WallTime(std::chrono::seconds(1'800'003'600));
  CHECK(later_job->until == date);
  CHECK_FALSE(read_job(path, "2").has_value());
  const auto status = read_status(path);
  CHECK(status.next_due == date);
  CHECK(status.counts.queued == 3);
  CHECK(status.counts.waiting == 1);
  CHECK(status.counts.total() == 4);
  CHECK(status.runs == 1);
  CHECK(status.last_run == files.wall);
}
