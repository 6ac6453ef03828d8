#include "peer.hpp"

#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <exception>
#include <iostream>
#include <optional>
#include <sstream>

namespace bench {

Task::Task(const std::string& line) {
  std::istringstream words(line);
  words >> name_;
  for (std::string word; words >> word;) {
    const std::size_t equals = word.find('=');
    values_[word.substr(0, equals)] = word.substr(equals + 1);
  }
}

std::int64_t Task::get(const std::string& key, std::int64_t otherwise) const {
  const auto it = values_.find(key);
  return it == values_.end() ? otherwise : std::stoll(it->second);
}

bool Task::is(const std::string& key, const std::string& value) const {
  const auto it = values_.find(key);
  return it != values_.end() && it->second == value;
}

std::vector<std::int64_t> Task::extents(const std::string& key) const {
  std::vector<std::int64_t> out;
  if (const auto it = values_.find(key); it != values_.end()) {
    std::istringstream numbers(it->second);
    for (std::string number; std::getline(numbers, number, 'x');) out.push_back(std::stoll(number));
  }
  return out;
}

namespace {

class Generator {
 public:
  explicit Generator(std::uint32_t seed) : state_(seed * 2654435769u + 12345) {}
  /// 24 bits, which a float holds exactly.
  std::uint32_t next() {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 17;
    state_ ^= state_ << 5;
    return state_ >> 8;
  }

 private:
  std::uint32_t state_;
};

template <class T>
void fill_any(T* data, std::size_t n, std::uint32_t seed, double low, double high) {
  Generator generator(seed);
  for (std::size_t i = 0; i < n; ++i) data[i] = T(low + (high - low) * generator.next() / 16777216.0);
}

double seconds(clockid_t clock) {
  timespec now;
  clock_gettime(clock, &now);
  return double(now.tv_sec) + 1e-9 * double(now.tv_nsec);
}

/// Libraries print to standard output as they please; the driver's pipe is kept out of their way.
std::FILE* take_standard_output() {
  std::FILE* pipe = fdopen(dup(1), "w");
  dup2(2, 1);
  return pipe;
}

/// Not timed: the others' turns have emptied the caches, and a shared last-level cache keeps only what is used again.
void warm_up(const std::function<void()>& body) {
  const double begin = seconds(CLOCK_MONOTONIC);
  for (int i = 0; i < 3 && (i == 0 || seconds(CLOCK_MONOTONIC) - begin < 10e-3); ++i) body();
}

}  // namespace

void fill(float* data, std::size_t n, std::uint32_t seed, double low, double high) {
  fill_any(data, n, seed, low, high);
}

void fill(double* data, std::size_t n, std::uint32_t seed, double low, double high) {
  fill_any(data, n, seed, low, high);
}

void fill_labels(std::int64_t* data, std::size_t n, std::uint32_t seed, std::int64_t classes) {
  Generator generator(seed);
  for (std::size_t i = 0; i < n; ++i) data[i] = std::int64_t(generator.next()) % classes;
}

double weight_bound(std::int64_t fan_in) { return 1 / std::sqrt(double(fan_in)); }

int serve(const Peer& peer, int argc, char** argv) {
  std::FILE* answer = take_standard_output();
  const auto say = [&](const std::string& text) { std::fprintf(answer, "%s\n", text.c_str()), std::fflush(answer); };
  peer.set_threads(argc > 1 ? std::atoi(argv[1]) : 1);
  say(peer.version);

  std::optional<Work> work;
  for (std::string line; std::getline(std::cin, line);) try {
      std::istringstream words(line);
      std::string command;
      words >> command;
      if (command == "task") {
        work.reset();
        std::string rest;
        std::getline(words, rest);
        const Task task(rest);
        const auto maker = peer.makers.find(task.name());
        if (maker != peer.makers.end()) work = maker->second(task);
        if (work && work->body) work->body();
        say(work && work->body ? "ready" : "no");
      } else if (command == "values") {
        Values values;
        if (work->values) work->values(values);
        say(std::to_string(values.all.size()));
        std::fwrite(values.all.data(), sizeof(double), values.all.size(), answer);
        std::fflush(answer);
      } else if (command == "sample") {
        long repetitions = 1;
        words >> repetitions;
        warm_up(work->body);
        const double wall = seconds(CLOCK_MONOTONIC), cpu = seconds(CLOCK_PROCESS_CPUTIME_ID);
        for (long i = 0; i < repetitions; ++i) work->body();
        const double cpu_end = seconds(CLOCK_PROCESS_CPUTIME_ID), wall_end = seconds(CLOCK_MONOTONIC);
        char text[80];
        std::snprintf(text, sizeof text, "%.9f %.9f", wall_end - wall, cpu_end - cpu);
        say(text);
      } else {
        say("error: unknown command " + command);
      }
    } catch (const std::exception& e) {
      std::string text = e.what();
      say("error: " + text.substr(0, text.find('\n')));
    }
  return 0;
}

}  // namespace bench
