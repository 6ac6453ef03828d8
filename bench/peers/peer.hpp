#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

// One library in the comparison. Each is a program of its own, since two versions of one library do not fit into one
// process; the driver asks them in turn for one timed sample over a pipe. A peer is one file: makers of tasks, a list
// of them, and a `main` that calls `serve`.
namespace bench {

/// What is to be done: "conv1d n=16 c=64 pass=forward".
class Task {
 public:
  explicit Task(const std::string& line);

  const std::string& name() const { return name_; }
  /// The argument under this key. Throws std::out_of_range where there is none.
  std::int64_t operator[](const std::string& key) const { return std::stoll(values_.at(key)); }
  std::int64_t get(const std::string& key, std::int64_t otherwise) const;
  bool is(const std::string& key, const std::string& value) const;
  /// The numbers under this key, "512x256", or none.
  std::vector<std::int64_t> extents(const std::string& key) const;

 private:
  std::string name_;
  std::map<std::string, std::string> values_;
};

/// What a repetition computed, thinned out to some ten thousand numbers an array: enough to notice a wrong one, and
/// quick to compare.
class Values {
 public:
  template <class T>
  void add(const T* data, std::size_t n) {
    constexpr std::size_t kMost = 10007;
    const std::size_t step = n <= kMost ? 1 : n / kMost;
    for (std::size_t i = 0; i < n; i += step) all.push_back(double(data[i]));
  }
  std::vector<double> all;
};

/// A task made ready: `body` is one repetition, `values` reads what the last one left behind. No body: the library does
/// not offer this.
struct Work {
  std::function<void()> body;
  std::function<void(Values&)> values;
};

using Maker = Work (*)(const Task&);

struct Peer {
  std::string version;
  std::map<std::string, Maker> makers;
  void (*set_threads)(int);
};

/// Answers the driver until its end of the pipe closes. `argv[1]` is the number of threads.
int serve(const Peer& peer, int argc, char** argv);

/// The same numbers in every peer: evenly spread over [low, high), from a small generator.
void fill(float* data, std::size_t n, std::uint32_t seed, double low = -1, double high = 1);
void fill(double* data, std::size_t n, std::uint32_t seed, double low = -1, double high = 1);
void fill_labels(std::int64_t* data, std::size_t n, std::uint32_t seed, std::int64_t classes);

/// Weights of a layer whose outputs sum `fan_in` terms stay within 1 / sqrt(fan_in).
double weight_bound(std::int64_t fan_in);

}  // namespace bench
