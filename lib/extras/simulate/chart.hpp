// Charts of a run over time, as SVG fragments.
#pragma once

#include <httpretry/simulate/simulate.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace httpretry::simulation {

// Returns the CSS for drawings and pages: fonts, and colors for light and dark mode.
[[nodiscard]] std::string_view style();

// Returns the text with "<", ">", "&" and quotes as entities.
[[nodiscard]] std::string escaped(std::string_view text);

enum class Anchor : std::uint8_t { Start, Middle, End };
// Returns a text element at a position. `cls` is its CSS class.
[[nodiscard]] std::string text_at(double x, double y, std::string_view text, std::string_view cls,
                                  Anchor anchor = Anchor::Start);

// A curve, with one value for each piece of Pieces.
using Curve = std::vector<double>;

// The time that charts show, divided into pieces of equal length.
struct Pieces {
  explicit Pieces(const SimulationReport& report);
  double length = 1;  // of a piece, in seconds
  double end = 60;    // of the last piece, in seconds
  [[nodiscard]] std::size_t count() const { return static_cast<std::size_t>(end / length + 0.5); }
  // Returns one of the counts of the samples, per second.
  [[nodiscard]] Curve rate(const SimulationRun& run, std::uint32_t SimulationSample::*field) const;
  // These return the values of the last sample in each piece.
  [[nodiscard]] Curve in_flight(const SimulationRun& run) const;
  [[nodiscard]] Curve budget(const SimulationRun& run) const;

 private:
  template <class ValueOf>
  [[nodiscard]] Curve at_ends(const SimulationRun& run, ValueOf value_of) const;
  [[nodiscard]] std::size_t samples() const;  // per piece
};

// Returns the largest value of the curve.
[[nodiscard]] double most(const Curve& curve);

// Chart: a rectangle with axes. Time runs to the right, and values go up from 0 to `top`.
class Chart {
 public:
  Chart(double x, double y, double width, double height, const Pieces& pieces, double top);

  enum class Times : std::uint8_t { Show, Hide };
  // Returns the grid with numbers on the left and, with Times::Show, with times below it.
  [[nodiscard]] std::string axes(Times times = Times::Show) const;
  // Returns a colored band for the time of each trigger.
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
