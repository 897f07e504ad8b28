#include "raw.hpp"

#include "measure.hpp"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>

namespace bench {

RawRequest::RawRequest(const std::string& url, const std::vector<std::string>& headers,
                       Options options)
    : easy_(curl_easy_init()), url_(curl_url()), text_(headers) {
  demand(easy_ != nullptr && url_ != nullptr, "libcurl gives no handle");
  if (options == Options::Tuned) {
    curl_url_set(url_, CURLUPART_URL, url.c_str(), 0);
    curl_easy_setopt(easy_, CURLOPT_CURLU, url_);
    curl_easy_setopt(easy_, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy_, CURLOPT_PROXY, "");
    text_.emplace_back("Accept:");
  } else {
    curl_easy_setopt(easy_, CURLOPT_URL, url.c_str());
  }
  for (auto& line : text_) lines_.push_back({line.data(), nullptr});
  for (std::size_t i = 1; i < lines_.size(); ++i) lines_[i - 1].next = &lines_[i];

  if (!lines_.empty()) curl_easy_setopt(easy_, CURLOPT_HTTPHEADER, lines_.data());
  curl_easy_setopt(easy_, CURLOPT_HEADERFUNCTION, &on_header);
  curl_easy_setopt(easy_, CURLOPT_HEADERDATA, this);
  curl_easy_setopt(easy_, CURLOPT_WRITEFUNCTION, &on_body);
  curl_easy_setopt(easy_, CURLOPT_WRITEDATA, this);
  curl_easy_setopt(easy_, CURLOPT_PRIVATE, this);
}

void RawRequest::trust(const std::string& ca_file) {
  curl_easy_setopt(easy_, CURLOPT_CAINFO, ca_file.c_str());
  curl_easy_setopt(easy_, CURLOPT_CAPATH, nullptr);  // or each connection reads the file
}

RawRequest::~RawRequest() {
  curl_easy_cleanup(easy_);
  curl_url_cleanup(url_);
}

Answer RawRequest::take() {
  curl_easy_getinfo(easy_, CURLINFO_RESPONSE_CODE, &answer_.status);
  return std::move(answer_);
}

std::size_t RawRequest::on_header(char* data, std::size_t size, std::size_t count, void* self) {
  auto& headers = static_cast<RawRequest*>(self)->answer_.headers;
  if (headers.capacity() < 384) headers.reserve(384);
  headers.append(data, size * count);
  return size * count;
}

std::size_t RawRequest::on_body(char* data, std::size_t size, std::size_t count, void* self) {
  auto& request = *static_cast<RawRequest*>(self);
  auto& body = request.answer_.body;
  if (body.empty()) {
    curl_off_t length = -1;
    curl_easy_getinfo(request.easy_, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
    if (length > 0) body.reserve(static_cast<std::size_t>(length));
  }
  body.append(data, size * count);
  return size * count;
}

namespace {

void demand_good(const Answer& answer) {
  demand(answer.status == 200 && !answer.headers.empty() && !answer.body.empty(),
         "a raw request was not answered as it should be");
}

}  // namespace

void perform(RawRequest& request, long count) {
  while (count-- > 0) {
    request.begin();
    demand(curl_easy_perform(request.handle()) == CURLE_OK, "a raw request failed");
    demand_good(request.take());
  }
}

void Drive::run(const std::vector<std::unique_ptr<RawRequest>>& requests, long count) {
  left_to_start_ = left_to_end_ = count;
  for (const auto& request : requests) {
    if (left_to_start_ == 0) break;
    --left_to_start_;
    request->begin();
    start(*request);
  }
  while (left_to_end_ > 0) turn();
}

void Drive::reap(CURLM* multi) {
  int left = 0;
  while (CURLMsg* message = curl_multi_info_read(multi, &left)) {
    demand(message->msg == CURLMSG_DONE && message->data.result == CURLE_OK,
           "a raw request failed");
    RawRequest* request = nullptr;
    curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &request);
    curl_multi_remove_handle(multi, request->handle());
    demand_good(request->take());
    --left_to_end_;
    if (left_to_start_ == 0) continue;
    --left_to_start_;
    request->begin();
    start(*request);
  }
}

CURLM* Drive::make_multi(long connections) {
  CURLM* multi = curl_multi_init();
  demand(multi != nullptr, "libcurl gives no multi");
  // More than are in flight, or they would be closed and opened all the time.
  curl_multi_setopt(multi, CURLMOPT_MAXCONNECTS, 2 * connections);
  return multi;
}

namespace {

class Poll final : public Drive {
 public:
  explicit Poll(std::size_t width) : multi_(make_multi(static_cast<long>(width))) {}
  ~Poll() override { curl_multi_cleanup(multi_); }

 private:
  void start(RawRequest& request) override {
    demand(curl_multi_add_handle(multi_, request.handle()) == CURLM_OK, "curl_multi_add_handle");
  }
  void turn() override {
    int running = 0;
    demand(curl_multi_perform(multi_, &running) == CURLM_OK, "curl_multi_perform");
    reap(multi_);
    if (running > 0) curl_multi_poll(multi_, nullptr, 0, 1000, nullptr);
  }
  CURLM* multi_;
};

class Epoll final : public Drive {
 public:
  Epoll(std::size_t width, std::size_t per_multi) : shards_((width - 1) / per_multi + 1) {
    for (auto& shard : shards_) {
      shard.drive = this;
      shard.multi = make_multi(static_cast<long>(per_multi));
      curl_multi_setopt(shard.multi, CURLMOPT_SOCKETFUNCTION, &on_socket);
      curl_multi_setopt(shard.multi, CURLMOPT_SOCKETDATA, &shard);
      curl_multi_setopt(shard.multi, CURLMOPT_TIMERFUNCTION, &on_timer);
      curl_multi_setopt(shard.multi, CURLMOPT_TIMERDATA, &shard);
    }
  }
  ~Epoll() override {
    for (auto& shard : shards_) curl_multi_cleanup(shard.multi);
    ::close(epoll_);
  }

 private:
  using Clock = std::chrono::steady_clock;
  struct Shard {
    Epoll* drive = nullptr;
    CURLM* multi = nullptr;
    Clock::time_point deadline = Clock::time_point::max();
  };
  struct Socket {
    Shard* shard = nullptr;
    std::uint32_t registered = 0;
    std::uint32_t wanted = 0;
  };

  void start(RawRequest& request) override {
    auto& shard = shards_[next_++ % shards_.size()];
    curl_easy_setopt(request.handle(), CURLOPT_CLOSESOCKETFUNCTION, &on_close);
    curl_easy_setopt(request.handle(), CURLOPT_CLOSESOCKETDATA, this);
    demand(curl_multi_add_handle(shard.multi, request.handle()) == CURLM_OK,
           "curl_multi_add_handle");
  }

  void turn() override {
    auto next = Clock::time_point::max();
    for (auto& shard : shards_) {
      if (shard.deadline <= now_) {
        shard.deadline = Clock::time_point::max();
        act(shard, CURL_SOCKET_TIMEOUT, 0);
      }
      next = std::min(next, shard.deadline);
    }
    int timeout = 1000;
    if (next != Clock::time_point::max()) {
      const auto wait = std::chrono::ceil<std::chrono::milliseconds>(next - now_).count();
      timeout = static_cast<int>(std::clamp<std::int64_t>(wait, 0, 1000));
    }
    std::array<epoll_event, 256> events;  // NOLINT: epoll_wait fills it
    const int count = ::epoll_wait(epoll_, events.data(), static_cast<int>(events.size()), timeout);
    now_ = Clock::now();
    for (int i = 0; i < count; ++i) {
      const auto& event = events[static_cast<std::size_t>(i)];
      auto& socket = sockets_[static_cast<std::size_t>(event.data.fd)];
      if (socket.wanted == 0) {
        ::epoll_ctl(epoll_, EPOLL_CTL_DEL, event.data.fd, nullptr);
        socket.registered = 0;
        continue;
      }
      int mask = 0;
      if ((event.events & EPOLLIN) != 0) mask |= CURL_CSELECT_IN;
      if ((event.events & EPOLLOUT) != 0) mask |= CURL_CSELECT_OUT;
      if ((event.events & (EPOLLERR | EPOLLHUP)) != 0) mask |= CURL_CSELECT_ERR;
      act(*socket.shard, event.data.fd, mask);
    }
  }

  void act(Shard& shard, curl_socket_t fd, int mask) {
    int running = 0;
    demand(curl_multi_socket_action(shard.multi, fd, mask, &running) == CURLM_OK,
           "curl_multi_socket_action");
    reap(shard.multi);
  }

  static int on_socket(CURL* /*easy*/, curl_socket_t fd, int what, void* user, void* /*own*/) {
    auto& shard = *static_cast<Shard*>(user);
    auto& sockets = shard.drive->sockets_;
    if (static_cast<std::size_t>(fd) >= sockets.size())
      sockets.resize(static_cast<std::size_t>(fd) + 1);
    auto& socket = sockets[static_cast<std::size_t>(fd)];
    socket.shard = &shard;
    socket.wanted = 0;
    if (what == CURL_POLL_REMOVE) return 0;
    if ((what & CURL_POLL_IN) != 0) socket.wanted |= EPOLLIN;
    if ((what & CURL_POLL_OUT) != 0) socket.wanted |= EPOLLOUT;
    if (socket.wanted == socket.registered) return 0;
    epoll_event event{};
    event.events = socket.wanted;
    event.data.fd = fd;
    const int how = socket.registered == 0 ? EPOLL_CTL_ADD : EPOLL_CTL_MOD;
    demand(::epoll_ctl(shard.drive->epoll_, how, fd, &event) == 0, "epoll_ctl");
    socket.registered = socket.wanted;
    return 0;
  }
  static int on_timer(CURLM* /*multi*/, long timeout, void* user) {
    auto& shard = *static_cast<Shard*>(user);
    shard.deadline = timeout < 0 ? Clock::time_point::max()
                                 : shard.drive->now_ + std::chrono::milliseconds(timeout);
    return 0;
  }
  static int on_close(void* self, curl_socket_t fd) {
    auto& sockets = static_cast<Epoll*>(self)->sockets_;
    if (static_cast<std::size_t>(fd) < sockets.size()) sockets[static_cast<std::size_t>(fd)] = {};
    return ::close(fd);
  }

  int epoll_ = ::epoll_create1(EPOLL_CLOEXEC);
  Clock::time_point now_ = Clock::now();
  std::size_t next_ = 0;
  std::vector<Shard> shards_;
  std::vector<Socket> sockets_;
};

}  // namespace

std::unique_ptr<Drive> drive_by_poll(std::size_t width) { return std::make_unique<Poll>(width); }
std::unique_ptr<Drive> drive_by_epoll(std::size_t width, std::size_t per_multi) {
  return std::make_unique<Epoll>(width, per_multi);
}

}  // namespace bench
