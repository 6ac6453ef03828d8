#include <sys/utsname.h>

#include <CLI/Version.hpp>
#include <fstream>
#include <thread>

#include "base/cpu_features.hpp"
#include "base/fail.hpp"
#include "cli/failure.hpp"
#include "cli/output.hpp"
#include "cli/table.hpp"
#include "cli/verb.hpp"
#include "config/json_text.hpp"
#include "taper/creation.hpp"

namespace taper::cli {

namespace {

/// The vector instructions of this processor that matter to kernels, smallest first.
std::string cpu_features() {
#if defined(__x86_64__) && defined(__GNUC__)
  std::string text;
  const auto add = [&text](bool has, const char* name) {
    if (has) text += cat(text.empty() ? "" : " ", name);
  };
  add(TAPER_CPU_SUPPORTS("sse4.2", SSE4_2), "sse4.2");
  add(TAPER_CPU_SUPPORTS("avx", AVX), "avx");
  add(TAPER_CPU_SUPPORTS("avx2", AVX2), "avx2");
  add(TAPER_CPU_SUPPORTS("fma", FMA), "fma");
  add(TAPER_CPU_SUPPORTS("avx512f", AVX512F), "avx512f");
  add(TAPER_CPU_SUPPORTS("avx512bw", AVX512BW), "avx512bw");
  add(TAPER_CPU_SUPPORTS("avx512dq", AVX512DQ), "avx512dq");
  add(TAPER_CPU_SUPPORTS("avx512vl", AVX512VL), "avx512vl");
  return text;
#else
  return "unknown";
#endif
}

std::string cpu_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("model name") && line.find(": ") != std::string::npos) return line.substr(line.find(": ") + 2);
  return "unknown";
}

std::string compiled_for() {
#if defined(__AVX512F__)
  return "avx512f";
#elif defined(__AVX2__)
  return "avx2";
#elif defined(__SSE4_2__)
  return "sse4.2";
#else
  return "the architecture's baseline";
#endif
}

std::string system_name() {
  utsname name{};
  if (::uname(&name) != 0) return "unknown";
  return cat(static_cast<const char*>(name.sysname), ' ', static_cast<const char*>(name.release), ' ',
             static_cast<const char*>(name.machine));
}

std::vector<std::pair<std::string, std::string>> facts() {
  return {{"version", TAPER_VERSION},
          {"compiler", TAPER_COMPILER},
          {"build type", TAPER_BUILD_TYPE},
          {"flags", TAPER_FLAGS},
          {"compiled for", compiled_for()},
          {"system", system_name()},
          {"processor", cpu_name()},
          {"processor features", cpu_features()},
          {"CPU capability", get_cpu_capability()},
          {"processors", cat(std::thread::hardware_concurrency())},
          {"threads", cat(get_num_threads())},
          {"OpenMP", TAPER_OPENMP},
          {"nlohmann_json", TAPER_JSON},
          {"zlib", TAPER_ZLIB},
          {"CLI11", CLI11_VERSION}};
}

class Env final : public Command {
 public:
  void declare(Arguments& arguments) override { arguments.flag("--json", "as JSON", json_); }

  int run() override {
    Table table;
    config::Json object = config::Json::object();
    for (const auto& [name, value] : facts()) {
      table.add({name, value});
      object[name] = value;
    }
    print(json_ ? object.dump(2, ' ', false, config::Json::error_handler_t::replace) + "\n" : table.to_string());
    return kDone;
  }

 private:
  bool json_ = false;
};

}  // namespace

const Verb kEnv = {"env", "says what a bug report needs: version, compiler, processor, libraries",
                   R"(  taper env
  taper env --json
)",
                   make_command<Env>};

}  // namespace taper::cli
