#include <httpretry/http/detail/small_text.hpp>

#include <cstring>
#include <new>
#include <ostream>

namespace httpretry::detail {
namespace {

// A long text is one block: its size, its bytes and NUL.
char* make_block(std::string_view text) {
  const auto size = text.size();
  auto* const block = static_cast<char*>(::operator new(sizeof size + size + 1));
  std::memcpy(block, &size, sizeof size);
  text.copy(block + sizeof size, size);
  block[sizeof size + size] = '\0';
  return block;
}

char* block_in(const std::array<char, 15>& bytes) noexcept {
  char* block = nullptr;
  std::memcpy(&block, bytes.data(), sizeof block);
  return block;
}

}  // namespace

SmallText::SmallText(std::string_view text) {
  if (text.size() < bytes_.size()) {
    text.copy(bytes_.data(), text.size());
    size_ = static_cast<std::uint8_t>(text.size());
  } else {
    const auto* const block = make_block(text);
    std::memcpy(bytes_.data(), &block, sizeof block);
    size_ = kLong;
  }
}

SmallText& SmallText::operator=(const SmallText& other) { return *this = SmallText(other); }

SmallText& SmallText::operator+=(std::string_view more) {
  return *this = SmallText(std::string(*this).append(more));
}

std::string_view SmallText::long_text() const noexcept {
  const auto* const block = block_in(bytes_);
  std::size_t size = 0;
  std::memcpy(&size, block, sizeof size);
  return {block + sizeof size, size};
}

void SmallText::release() noexcept { ::operator delete(block_in(bytes_)); }

std::ostream& operator<<(std::ostream& out, const SmallText& text) {
  return out << std::string_view(text);
}
std::ostream& operator<<(std::ostream& out, StaticText text) {
  return out << std::string_view(text);
}

}  // namespace httpretry::detail
