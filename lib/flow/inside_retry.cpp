#include <httpretry/flow/inside_retry.hpp>

namespace httpretry::detail {
namespace {

thread_local int depth = 0;

}  // namespace

InsideRetry::InsideRetry() { ++depth; }
InsideRetry::~InsideRetry() { --depth; }
bool inside_retry() { return depth > 0; }

}  // namespace httpretry::detail
