// A bounded lock-free queue of spans, with many producers and one consumer. It is Dmitry Vyukov's
// bounded queue: a cell at position N accepts a put while its `turn` (a sequence number) is N, and
// a take while it is N + 1.
#pragma once

#include <httpretry/telemetry/traces.hpp>

#include <atomic>
#include <bit>
#include <cstddef>
#include <vector>

namespace httpretry::telemetry {

class SpanQueue {
 public:
  explicit SpanQueue(std::size_t size)
      : cells_(std::bit_ceil(size < 2 ? std::size_t{2} : size)), mask_(cells_.size() - 1) {
    for (std::size_t i = 0; i < cells_.size(); ++i) {
      cells_[i].turn.store(i, std::memory_order_relaxed);
    }
  }
  ~SpanQueue() {
    while (take()) {
    }
  }
  SpanQueue(const SpanQueue&) = delete;
  SpanQueue& operator=(const SpanQueue&) = delete;

  [[nodiscard]] std::size_t capacity() const { return cells_.size(); }

  static constexpr std::size_t kFull = SIZE_MAX;

  // Moves the span into the queue, and returns the number of spans that were put before it. If the
  // queue is full, returns kFull and leaves the span alone. Any thread may call this at any time.
  // `last_` is the position of the next put. A cell accepts a put at position N while its `turn` is
  // N. The producer that advances `last_` from N owns the cell until it sets `turn` to N + 1, which
  // passes the span to take(). take() then sets `turn` to the position one round later.
  std::size_t put(SpanPtr& span) noexcept {
    auto position = last_.load(std::memory_order_relaxed);
    for (;;) {
      auto& cell = cells_[position & mask_];
      const auto turn = cell.turn.load(std::memory_order_acquire);
      if (turn == position) {
        // A failed exchange loads the new value of `last_` into `position`.
        if (last_.compare_exchange_weak(position, position + 1, std::memory_order_relaxed)) {
          cell.span = std::move(span);
          cell.turn.store(position + 1, std::memory_order_release);
          return position;
        }
      } else if (turn < position) {
        return kFull;  // the cell still holds the span that was put one round earlier
      } else {
        position = last_.load(std::memory_order_relaxed);  // another producer has used the cell
      }
    }
  }

  // Returns nullptr if the queue is empty. Only one thread may take.
  SpanPtr take() noexcept {
    auto& cell = cells_[first_ & mask_];
    if (cell.turn.load(std::memory_order_acquire) != first_ + 1) return nullptr;
    auto span = std::move(cell.span);
    cell.turn.store(first_ + cells_.size(), std::memory_order_release);
    ++first_;
    return span;
  }

 private:
  struct Cell {
    std::atomic<std::size_t> turn;
    SpanPtr span;
  };
  std::vector<Cell> cells_;
  const std::size_t mask_;
  // On different cache lines, so that producers do not slow down the consumer.
  alignas(64) std::atomic<std::size_t> last_ = 0;
  alignas(64) std::size_t first_ = 0;  // used only by the consumer
};

}  // namespace httpretry::telemetry
