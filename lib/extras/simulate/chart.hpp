// Charts of a run over time, as parts of an SVG.
#pragma once

#include <httpretry/simulate/simulate.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace httpretry::simulation {

// The colours and fonts, of a drawing and of a page: light and dark.
[[nodiscard]] std::string_view style();

// With "<", "&" and quotes as entities.
[[nodiscard]] std::string escaped(std::string_view text);

enum class Anchor : std::uint8_t { Start, Middle, End };
[[nodiscard]] std::string text_at(double x, double y, std::string_view text, std::string_view cls,
                                  Anchor anchor = Anchor::Start);

// The values of one curve: one for each piece of time, all of one length.
using Curve = std::vector<double>;

// The time that charts show, and how it is divided.
struct Pieces {
  explicit Pieces(const SimulationReport& report);
  double length = 1;  // of a piece, in seconds
  double end = 60;    // of the last piece
  [[nodiscard]] std::size_t count() const { return static_cast<std::size_t>(end / length + 0.5); }
  // A count of the samples, per second.
  [[nodiscard]] Curve rate(const SimulationRun& run, std::uint32_t SimulationSample::*count) const;
  // What the samples had at the end of each piece.
  [[nodiscard]] Curve in_flight(const SimulationRun& run) const;
  [[nodiscard]] Curve budget(const SimulationRun& run) const;

 private:
  template <class Take>
  [[nodiscard]] Curve at_ends(const SimulationRun& run, Take take) const;
  [[nodiscard]] std::size_t samples() const;  // in a piece
};

[[nodiscard]] double most(const Curve& curve);

// A rectangle with axes: time to the right, from 0 to `top` upwards.
class Chart {
 public:
  Chart(double x, double y, double width, double height, const Pieces& pieces, double top);

  // The grid, with numbers at the left, and with times below it if wanted.
  [[nodiscard]] std::string axes(bool times) const;
  // The times of triggers.
  [[nodiscard]] std::string bands(const std::vector<Trigger>& triggers) const;
  [[nodiscard]] std::string line(const Curve& curve, std::string_view cls) const;
  [[nodiscard]] std::string area(const Curve& curve, std::string_view cls) const;

 private:
  [[nodiscard]] double right_of(double seconds) const;
  [[nodiscard]] double up_to(double value) const;
  [[nodiscard]] std::string points(const Curve& curve) const;

  double x_, y_, width_, height_;
  const Pieces& pieces_;
  double step_;
  double top_;
};

}  // namespace httpretry::simulation
