// Tests what a journal does if syncing a file fails. Replaces two functions of the C library.
#include "tests/batch/journal_files.hpp"

#include <doctest/doctest.h>

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <utility>

using namespace httpretry::batch;

namespace {

int fsyncs_until_failure = 0;  // 0: none fails
int syncs_of_all = 0;

}  // namespace

extern "C" {

int fsync(int file) {
  if (fsyncs_until_failure > 0 && --fsyncs_until_failure == 0) {
    errno = EIO;
    return -1;
  }
  return static_cast<int>(::syscall(SYS_fsync, file));
}

void sync() noexcept { ++syncs_of_all; }

}  // extern "C"

TEST_CASE("a new journal is used only if its file and its directory can be synced") {
  for (const int failure : {1, 2}) {
    CAPTURE(failure);
    JournalFiles files;
    files.input_of(1);
    const auto path = files.folder / "j.db";
    const auto message = "cannot write to " +
                         (failure == 1 ? path + ".new" : "the directory of " + path) +
                         ": Input/output error";
    fsyncs_until_failure = failure;
    CHECK_THROWS_WITH_AS(files.open(), message.c_str(), StoreError);
    CHECK(fsyncs_until_failure == 0);
    CHECK(files.folder.has("j.db") == (failure == 2));
    const auto journal = files.open();
    REQUIRE(journal != nullptr);
    CHECK(journal->counts().queued == 1);
  }
}

TEST_CASE("without a free descriptor, bodies become durable with all other files") {
  JournalFiles files;
  files.survives_power_loss = true;
  files.input_of(2);
  const auto journal = files.open();
  for (const bool has_descriptors : {true, false}) {
    CAPTURE(has_descriptors);
    const auto jobs = take(*journal, 1);
    REQUIRE(jobs.size() == 1);
    auto end = end_of(*journal, jobs[0], State::Done);
    end.body_file = files.folder.write("body", "x");
    journal->finish(jobs[0], std::move(end));
    struct ::rlimit usual {};
    REQUIRE(::getrlimit(RLIMIT_NOFILE, &usual) == 0);
    auto limit = usual;
    if (!has_descriptors) limit.rlim_cur = 0;
    syncs_of_all = 0;
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &limit) == 0);
    CHECK_NOTHROW(journal->commit());
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &usual) == 0);
    CHECK(syncs_of_all == (has_descriptors ? 0 : 1));
  }
  CHECK(files.folder.lines("results").size() == 2);
}
