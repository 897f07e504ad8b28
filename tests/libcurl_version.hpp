// What tests expect of a version of libcurl.
#pragma once

#include <curl/curl.h>

// Whether the libcurl in use, which need not be that of the headers, is older than 0xXXYYZZ.
inline bool libcurl_before(unsigned version) {
  return curl_version_info(CURLVERSION_NOW)->version_num < version;
}
