# The versions of libcurl that the tests are run with, and whether the one that was found is among them.
set(tested 7.88.1 8.14.1 8.23.0)
list(JOIN tested ", " HTTPRETRY_TESTED_LIBCURL)
if(CURL_VERSION_STRING IN_LIST tested)
  message(STATUS "libcurl ${CURL_VERSION_STRING}: httpretry is tested with it")
else()
  message(STATUS "libcurl ${CURL_VERSION_STRING}: httpretry is tested with ${HTTPRETRY_TESTED_LIBCURL}, not with this one")
endif()
