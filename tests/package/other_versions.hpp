// Versions of spdlog, fmt and nlohmann_json that are not those of httpretry: the symbols have the
// same names, while the classes look and behave otherwise. Each counts its uses.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

inline int uses = 0;  // of any function below

namespace spdlog {

struct logger {
  std::string only_member = "the program's logger";
};
[[gnu::noinline, gnu::used]] std::shared_ptr<logger> get(const std::string& /*name*/) {
  ++uses;
  return std::make_shared<logger>();
}
[[gnu::noinline, gnu::used]] std::shared_ptr<logger> default_logger() { return get({}); }

}  // namespace spdlog

namespace fmt {
inline namespace v9 {
namespace detail {

// fmt's throws.
[[gnu::noinline, gnu::used]] void throw_format_error(const char* /*message*/) { ++uses; }

}  // namespace detail
}  // namespace v9
}  // namespace fmt

#ifdef OTHER_NLOHMANN_JSON
namespace nlohmann {
inline namespace json_abi_v3_11_2 {

namespace detail {
enum class error_handler_t { strict, replace, ignore };
enum class value_t : std::uint8_t { null };
}  // namespace detail

template <class, class>
struct adl_serializer {};
template <class Key, class T, class... Rest>
struct ordered_map : std::map<Key, T> {};

template <template <class, class, class...> class ObjectType,
          template <class, class...> class ArrayType, class StringType, class BooleanType,
          class NumberIntegerType, class NumberUnsignedType, class NumberFloatType,
          template <class> class AllocatorType, template <class, class = void> class JSONSerializer,
          class BinaryType>
class basic_json {
 public:
  std::string dump(int /*indent*/ = -1, char /*fill*/ = ' ', bool /*ascii*/ = false,
                   detail::error_handler_t /*handler*/ = detail::error_handler_t::strict) const {
    ++uses;
    return only_member_;
  }
  const char* type_name() const noexcept {
    ++uses;
    return "the program's type";
  }
  detail::value_t type() const noexcept {
    ++uses;
    return detail::value_t::null;
  }

 private:
  std::string only_member_ = "the program's json";
};

template <template <class, class, class...> class Object>
using json_with = basic_json<Object, std::vector, std::string, bool, std::int64_t, std::uint64_t,
                             double, std::allocator, adl_serializer, std::vector<std::uint8_t>>;
using json = json_with<std::map>;
using ordered_json = json_with<ordered_map>;
template class basic_json<std::map, std::vector, std::string, bool, std::int64_t, std::uint64_t,
                          double, std::allocator, adl_serializer, std::vector<std::uint8_t>>;
template class basic_json<ordered_map, std::vector, std::string, bool, std::int64_t, std::uint64_t,
                          double, std::allocator, adl_serializer, std::vector<std::uint8_t>>;

}  // namespace json_abi_v3_11_2
}  // namespace nlohmann
#endif
