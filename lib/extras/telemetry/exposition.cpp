// Writes the text formats of Prometheus: 0.0.4 and OpenMetrics 1.0.
#include "words.hpp"

#include <httpretry/telemetry/metrics.hpp>

#include <array>
#include <cstdio>

namespace httpretry {
namespace {

using telemetry::number_text;

enum class TextFormat : std::uint8_t { Prometheus, OpenMetrics };
enum class Quotes : std::uint8_t { Keep, Escape };

// Returns the text with a newline as "\n" and a backslash as two. Quotes::Escape also puts a
// backslash before each quote.
std::string escaped(std::string_view text, Quotes quotes) {
  std::string safe;
  for (const char c : text) {
    if (c == '\n') {
      safe += "\\n";
    } else {
      if (c == '\\' || (quotes == Quotes::Escape && c == '"')) safe += '\\';
      safe += c;
    }
  }
  return safe;
}

// Returns "{name="value",…}", or an empty text without labels. A bucket of a histogram has its
// upper bound as the label "le".
std::string labels_text(const MetricSeries& series, std::string_view bound = {}) {
  std::string text;
  const auto put = [&](std::string_view name, std::string_view value) {
    text.append(text.empty() ? "{" : ",").append(name).append("=\"");
    text.append(escaped(value, Quotes::Escape)).append("\"");
  };
  for (const auto& [name, value] : series.labels) put(name, value);
  if (!bound.empty()) put("le", bound);
  return text.empty() ? text : text + "}";
}

class TextWriter {
 public:
  explicit TextWriter(TextFormat format) : openmetrics_(format == TextFormat::OpenMetrics) {}

  // Returns the metrics as text. Each family that has a series begins with comment lines. Then a
  // series has one line, or several if it is a histogram. The functions below append to `text_`.
  std::string write(const MetricsSnapshot& snapshot) {
    for (const auto& family : snapshot.families) {
      if (family.series.empty()) continue;
      append_comments(family);
      for (const auto& series : family.series) {
        if (family.kind == MetricFamily::Kind::Histogram) {
          append_histogram(family, series);
        } else {
          append_line(family.name, labels_text(series), number_text(series.value));
        }
      }
    }
    if (openmetrics_) text_ += "# EOF\n";  // without it, a reader assumes that the text is cut off
    return std::move(text_);
  }

 private:
  // Writes the comment lines with the help, type and unit of a family. OpenMetrics omits "_total"
  // from the name there.
  void append_comments(const MetricFamily& family) {
    std::string_view name = family.name;
    std::string_view kind = "counter";
    if (family.kind == MetricFamily::Kind::Gauge) kind = "gauge";
    if (family.kind == MetricFamily::Kind::Histogram) kind = "histogram";
    constexpr std::string_view kTotal = "_total";
    if (openmetrics_ && name.ends_with(kTotal)) name.remove_suffix(kTotal.size());
    const auto help = escaped(family.help, openmetrics_ ? Quotes::Escape : Quotes::Keep);
    text_.append("# HELP ").append(name).append(" ").append(help);
    text_.append("\n# TYPE ").append(name).append(" ").append(kind).append("\n");
    if (openmetrics_ && name.ends_with("_seconds")) {
      text_.append("# UNIT ").append(name).append(" seconds\n");
    }
  }

  // Writes one sample, with its exemplar if the format has them.
  void append_line(const std::string& name, const std::string& labels, const std::string& value,
                   const std::optional<Exemplar>& exemplar = {}) {
    text_.append(name).append(labels).append(" ").append(value);
    if (openmetrics_ && exemplar) {
      const std::chrono::duration<double> seconds = exemplar->at.time_since_epoch();
      std::array<char, 32> time{};
      std::snprintf(time.data(), time.size(), "%.3f", seconds.count());
      text_.append(" # {trace_id=\"").append(exemplar->trace_id).append("\",span_id=\"");
      text_.append(exemplar->span_id).append("\"} ").append(number_text(exemplar->value));
      text_.append(" ").append(time.data());
    }
    text_ += '\n';
  }

  // In OpenMetrics, a bound must have a decimal point or an exponent.
  std::string bound_text(double bound) const {
    auto text = number_text(bound);
    if (openmetrics_ && text.find_first_of(".e") == std::string::npos) text += ".0";
    return text;
  }

  // Writes a line for each bucket, the sum and the count. Each bucket includes the smaller ones.
  // The last bucket, which has no entry in `bounds`, contains all values.
  void append_histogram(const MetricFamily& family, const MetricSeries& series) {
    std::uint64_t cumulative_count = 0;
    for (std::size_t i = 0; i < series.counts.size(); ++i) {
      cumulative_count += series.counts[i];
      const auto bound = i < family.bounds.size() ? bound_text(family.bounds[i]) : "+Inf";
      append_line(family.name + "_bucket", labels_text(series, bound),
                  std::to_string(cumulative_count),
                  i < series.exemplars.size() ? series.exemplars[i] : std::nullopt);
    }
    append_line(family.name + "_sum", labels_text(series), number_text(series.value));
    append_line(family.name + "_count", labels_text(series), std::to_string(cumulative_count));
  }

  bool openmetrics_;
  std::string text_;
};

}  // namespace

std::string prometheus_text(const MetricsSnapshot& snapshot) {
  return TextWriter(TextFormat::Prometheus).write(snapshot);
}
std::string openmetrics_text(const MetricsSnapshot& snapshot) {
  return TextWriter(TextFormat::OpenMetrics).write(snapshot);
}

std::string Metrics::prometheus() const { return prometheus_text(snapshot()); }
std::string Metrics::openmetrics() const { return openmetrics_text(snapshot()); }

Metrics::Page Metrics::page(std::string_view accept) const {
  const bool open = accept.find("application/openmetrics-text") != std::string_view::npos;
  if (open) return {kOpenMetricsType, openmetrics()};
  return {kPrometheusType, prometheus()};
}

}  // namespace httpretry
