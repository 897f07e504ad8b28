// What the drawing of a schedule is made of: texts, lines, marks and axes.
#pragma once

#include <httpretry/http/attempt.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace httpretry::cli {

// All lengths are pixels of the drawing.
inline constexpr int kWidth = 760;
inline constexpr int kMargin = 16;
inline constexpr int kLeft = 190;   // where times begin
inline constexpr int kRight = 470;  // where they end

// `text` for XML, without control characters.
std::string escaped(std::string_view text);

std::string number(double value);

enum class Anchor { Start, Middle, End };

// A text with the classes `names` of the style sheet.
std::string text_at(double x, double y, std::string_view text, std::string_view names = "",
                    Anchor anchor = Anchor::Start);

std::string line(double x1, double y1, double x2, double y2, std::string_view names);

std::string rectangle(double x, double y, double width, double height, std::string_view names);

// The lines of a text between the margins. The fonts of the reader are not known here, so a letter
// is taken to be as wide as in the widest font in use, DejaVu Sans.
inline constexpr double kTitleLetter = 10.8;
inline constexpr double kSmallLetter = 7;
std::vector<std::string> wrapped(std::string_view text, double letter);

// The mark of a class: each has a colour and a shape of its own.
std::string mark(Class cls, double x, double y);

// The start of the file: size, title and style sheet, for light and dark pages.
std::string opening(std::string_view title, int height);

// Maps times to pixels. It ends at a tick.
class Axis {
 public:
  explicit Axis(Duration longest);
  [[nodiscard]] double x(Duration time) const;
  // Vertical lines from `top` to `bottom`, with their times below.
  [[nodiscard]] std::string grid(int top, int bottom) const;

 private:
  [[nodiscard]] double x(double in_seconds) const;

  double step_ = 1;
  int ticks_ = 0;  // after the one at 0
};

}  // namespace httpretry::cli
