#pragma once

#include <cstdint>
#include <fstream>
#include <optional>
#include <string>

/// By how many bytes `call` raised this process's resident memory at its highest; nothing where the system does not
/// tell, or where a sanitizer keeps freed memory. It calls in any case.
template <class Call>
std::optional<std::int64_t> peak_growth(Call call) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  call();
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
  const bool measured = bool(std::ofstream("/proc/self/clear_refs") << "5" << std::flush);
  const std::int64_t before = status("VmRSS:");
  call();
  if (!measured) return std::nullopt;
  return status("VmHWM:") - before;
#endif
}
