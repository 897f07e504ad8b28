// The parts of metrics and exporter that hold what threads have counted: tables, shards, queues.
#include "lib/extras/telemetry/metrics_state.hpp"
#include "lib/extras/telemetry/span_queue.hpp"

#include <httpretry/telemetry/telemetry.hpp>

#include <doctest/doctest.h>

#include <memory>
#include <thread>
#include <vector>

using namespace httpretry;

TEST_CASE("a table finds each series that was added, and no other one") {
  telemetry::Table<telemetry::CountSeries> table;
  CHECK(table.find(0) == nullptr);
  std::vector<telemetry::CountSeries*> added;
  // Many of these keys begin at the same slot.
  const auto key_of = [](std::uint64_t i) { return (i << 44U) | (i % 3); };
  for (std::uint64_t i = 0; i < 1000; ++i) {
    CHECK(table.find(key_of(i)) == nullptr);
    added.push_back(&table.add(key_of(i)));
    CHECK(table.size() == added.size());
  }
  for (std::uint64_t i = 0; i < 1000; ++i) {
    auto* found = table.find(key_of(i));
    REQUIRE(found == added[i]);
    CHECK(found->key == key_of(i));
  }
  CHECK(table.find(key_of(1000)) == nullptr);
}

TEST_CASE("the labels of a send are packed and unpacked without loss") {
  telemetry::SendKey key;
  key.host = 0xABCDEF;
  key.method = 10;
  key.version = 5;
  key.error = 17;
  key.status = 65535;
  const auto same = telemetry::SendKey::unpack(key.pack());
  CHECK(same.host == 0xABCDEF);
  CHECK(same.method == 10);
  CHECK(same.version == 5);
  CHECK(same.error == 17);
  CHECK(same.status == 65535);
  const auto labels = telemetry::endpoint_key(0xFFFFFFFF, 12, 9);
  CHECK(static_cast<std::uint32_t>(labels) == 0xFFFFFFFF);
  CHECK(telemetry::first_label(labels) == 12);
  CHECK(telemetry::second_label(labels) == 9);
}

TEST_CASE("a thread keeps its shard of each Metrics, and leaves it to later threads") {
  Metrics::State first{MetricsOptions()};
  Metrics::State second{MetricsOptions()};
  auto* const of_first = first.shard();
  auto* const of_second = second.shard();
  REQUIRE(of_first != nullptr);
  CHECK(of_first != of_second);
  {
    Metrics::State third{MetricsOptions()};
    CHECK(third.shard() != nullptr);
  }
  Metrics::State fourth{MetricsOptions()};
  CHECK(fourth.shard() != nullptr);
  CHECK(first.shard() == of_first);
  CHECK(second.shard() == of_second);
  CHECK(first.shards.size() == 1);
  telemetry::Shard* of_threads[2]{};
  for (auto& each : of_threads) std::thread([&] { each = first.shard(); }).join();
  CHECK(of_threads[0] != of_first);
  CHECK(of_threads[0] == of_threads[1]);
  CHECK(first.shards.size() == 2);
}

TEST_CASE("a queue of spans has room for a power of two, and keeps their order") {
  struct Row {
    std::size_t size;
    std::size_t capacity;
  };
  for (const auto& row : {Row{0, 2}, Row{1, 2}, Row{2, 2}, Row{3, 4}, Row{4, 4}, Row{5, 8}}) {
    CAPTURE(row.size);
    telemetry::SpanQueue queue(row.size);
    CHECK(queue.capacity() == row.capacity);
    std::uint64_t put = 0;
    std::uint64_t taken = 0;
    const auto put_one = [&] {
      auto span = std::make_shared<Span>();
      span->id = put + 1;
      SpanPtr shared = std::move(span);
      const auto before = queue.put(shared);
      if (before == telemetry::SpanQueue::kFull) {
        CHECK(shared);
        return false;
      }
      CHECK(before == put);
      ++put;
      return true;
    };
    CHECK_FALSE(queue.take());
    for (int round = 0; round < 5; ++round) {
      while (put - taken < row.capacity) REQUIRE(put_one());
      CHECK_FALSE(put_one());
      while (taken < put - 1) {
        const auto span = queue.take();
        REQUIRE(span);
        CHECK(span->id == ++taken);
      }
    }
    REQUIRE(queue.take());
    CHECK_FALSE(queue.take());
  }
}
