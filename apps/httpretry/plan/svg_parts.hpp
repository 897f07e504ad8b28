// The elements of the drawing of a schedule: texts, lines, marks and axes.
#pragma once

#include <httpretry/http/attempt.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace httpretry::cli {

// All lengths are pixels of the drawing.
inline constexpr int kWidth = 760;
inline constexpr int kMargin = 16;
inline constexpr int kLeft = 190;   // left end of the time axis
inline constexpr int kRight = 470;  // right end of the time axis

// Returns `text` for XML, without control characters.
std::string escaped(std::string_view text);

std::string number(double value);

enum class Anchor { Start, Middle, End };

// Returns a text element. `names` are classes of the style sheet.
std::string text_at(double x, double y, std::string_view text, std::string_view names = "",
                    Anchor anchor = Anchor::Start);

std::string line(double x1, double y1, double x2, double y2, std::string_view names);

std::string rectangle(double x, double y, double width, double height, std::string_view names);

// Breaks a text into lines between the margins. The reader's font is unknown, so a letter counts as
// wide as in the widest common font, DejaVu Sans.
inline constexpr double kTitleLetter = 10.8;
inline constexpr double kSmallLetter = 7;
std::vector<std::string> wrapped(std::string_view text, double letter_width);

// Returns the mark of a class. Each class has its own color and shape.
std::string mark(Class cls, double x, double y);

// Returns the start of the file: size, title, and a style sheet for light and dark pages.
std::string opening(std::string_view title, int height);

// Axis maps times to pixels. It ends at a tick.
class Axis {
 public:
  explicit Axis(Duration longest);
  [[nodiscard]] double x(Duration time) const;
  // Draws vertical lines from `top` to `bottom`, with their times below.
  [[nodiscard]] std::string grid(int top, int bottom) const;

 private:
  [[nodiscard]] double x(double in_seconds) const;

  double step_ = 1;
  int ticks_ = 0;  // not counting the tick at 0
};

}  // namespace httpretry::cli
