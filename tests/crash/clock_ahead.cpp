// To be loaded into a program: its wall clock is an hour ahead.
#include <dlfcn.h>
#include <ctime>

extern "C" __attribute__((visibility("default"))) int clock_gettime(clockid_t clock,
                                                                    timespec* time) {
  using Original = int (*)(clockid_t, timespec*);
  static const auto original = reinterpret_cast<Original>(::dlsym(RTLD_NEXT, "clock_gettime"));
  const int status = original(clock, time);
  if (clock == CLOCK_REALTIME) time->tv_sec += 3600;
  return status;
}
