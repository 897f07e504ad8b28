// A journal for tests, opened as Batch does it, with clocks that the test moves.
#pragma once

#include "lib/extras/batch/journal.hpp"
#include "tests/batch/folder.hpp"

#include <memory>
#include <string>
#include <vector>

namespace httpretry::batch {

class JournalFiles {
 public:
  Folder folder;
  std::vector<std::string> problems;
  WallTime wall = WallTime(std::chrono::seconds(1'800'000'000));
  Duration uptime = std::chrono::hours(1);
  bool retry_unknown = false;
  bool survives_power_loss = false;

  void pass(Duration time) {
    wall += std::chrono::duration_cast<WallTime::duration>(time);
    uptime += time;
  }

  // nullptr after problems with the input.
  std::unique_ptr<Journal> open() {
    problems.clear();
    BatchOptions options;
    options.journal = folder / "j.db";
    options.input = folder / "in";
    options.on_problem = [this](const Problem& problem) {
      auto text = to_string(problem);
      problems.push_back(text.substr(text.find("/in:") + 4));
    };
    auto lock = std::make_unique<JournalLock>(options.journal);
    auto database = open_journal(options);
    if (!database) return nullptr;
    options.results = folder / "results";
    options.dead = folder / "dead";
    options.durability = survives_power_loss ? Durability::Power : Durability::Process;
    options.retry_unknown = retry_unknown;
    JournalClocks clocks;
    clocks.wall_now = [this] { return wall; };
    clocks.uptime = [this] { return uptime; };
    return std::make_unique<Journal>(std::move(lock), std::move(database), std::move(options),
                                     std::move(clocks));
  }

  void input_of(std::size_t lines, std::size_t from = 1) const {
    std::string text;
    for (std::size_t i = from; i < from + lines; ++i)
      text += "http://a/" + std::to_string(i) + "\n";
    folder.append("in", text);
  }
};

inline std::vector<Job> take(Journal& journal, std::size_t most) {
  std::vector<Job> jobs;
  journal.take(
      most, [](std::string_view /*host*/) { return true; }, jobs);
  return jobs;
}

inline std::string result_line(const Journal& journal, std::uint64_t number, State state) {
  return R"({"id":")" + std::to_string(number) + R"(","line":)" + std::to_string(number) +
         R"(,"run":")" + journal.token() + R"(","state":")" + std::string(to_string(state)) +
         R"(","status":200,"stop_reason":"success","attempts":[{}]})" + "\n";
}

inline JobEnd end_of(const Journal& journal, const Job& job, State state) {
  JobEnd end;
  end.state = state;
  end.status = 200;
  end.attempts = 1;
  end.reason = "success";
  if (state == State::Unknown) return end;
  end.result = result_line(journal, job.number, state);
  if (state == State::Dead) {
    const std::string_view result = end.result;
    RequestLine line;
    end.dead_letter =
        line_with(job.text, line, job.id, job.key, result.substr(0, result.size() - 1)) + "\n";
  }
  return end;
}

}  // namespace httpretry::batch
