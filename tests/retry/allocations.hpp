// How often this thread of the test program has allocated.
#pragma once

long allocations();
