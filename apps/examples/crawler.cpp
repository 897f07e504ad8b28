// A crawler with one coroutine for each page. It sends 20 requests at once, and reads each page
// once.
#include <httpretry/flow/task_group.hpp>
#include <httpretry/httpretry.hpp>
#include <httpretry/testing/testing.hpp>

#include <cstdio>
#include <mutex>
#include <set>
#include <sstream>
#include <string>

using namespace httpretry;

namespace {

class Crawler {
 public:
  explicit Crawler(std::string site) : site_(std::move(site)) {}

  // Reads the site, and returns the number of pages.
  std::size_t run() {
    auto begin = [this](TaskGroup& group) -> Task<> {
      enter("/1", group);
      co_return;
    };
    sync_wait(run_group(begin));
    return read_;
  }

 private:
  // Starts a coroutine for a page that is new.
  void enter(const std::string& path, TaskGroup& group) {
    {
      const std::lock_guard lock(mutex_);
      if (!known_.insert(path).second) return;
    }
    group.start(read(path, group));
  }

  Task<> read(std::string path, TaskGroup& group) {
    const Outcome page =
        co_await client_.co_send(Request::get(site_ + path), CallOptions().with_stop(group.stop()));
    if (!succeeded(page)) {
      std::fprintf(stderr, "%s: %s\n", path.c_str(), describe(page).c_str());
      co_return;
    }
    {
      const std::lock_guard lock(mutex_);
      ++read_;
    }
    std::istringstream links(page->body);
    for (std::string link; links >> link;) enter(link, group);
  }

  static ClientOptions twenty_at_once() {
    ClientOptions options;
    options.max_in_flight = 20;
    return options;
  }

  Client client_{twenty_at_once()};
  std::string site_;
  std::mutex mutex_;  // guards the members below
  std::set<std::string> known_;
  std::size_t read_ = 0;
};

// Returns a page of a site with 500 pages. Page n links to the pages 2n, 2n + 1 and 1.
Step page_for(const SeenRequest& request) {
  const int number = std::stoi(request.path.substr(1));
  std::string links = "/1";
  for (const int link : {2 * number, 2 * number + 1}) {
    if (link <= 500) links += " /" + std::to_string(link);
  }
  return Step(200, links);
}

}  // namespace

int main() {
  Step pages;
  pages.respond = page_for;
  FaultServer server({pages});
  Crawler crawler(server.url(""));
  const auto pages_read = crawler.run();
  std::printf("%zu pages\n", pages_read);
  return pages_read == 500 ? 0 : 1;
}
