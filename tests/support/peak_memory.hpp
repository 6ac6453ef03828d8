#pragma once

#include <cstdint>
#include <fstream>
#include <optional>
#include <string>

/// By how many bytes `call` raised this process's resident memory at its highest; nothing where the system does not
/// tell, or where a sanitizer keeps freed memory.
template <class Call>
std::optional<std::int64_t> peak_growth([[maybe_unused]] Call call) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return std::nullopt;
#else
  const auto status = [](const std::string& key) {
    std::ifstream file("/proc/self/status");
    std::string word;
    std::int64_t kilobytes = -1;
    while (file >> word)
      if (word == key) file >> kilobytes;
    return kilobytes * 1024;
  };
  // Writing 5 sets the high-water mark back to what is resident now.
  if (!(std::ofstream("/proc/self/clear_refs") << "5" << std::flush)) return std::nullopt;
  const std::int64_t before = status("VmRSS:");
  call();
  return status("VmHWM:") - before;
#endif
}
