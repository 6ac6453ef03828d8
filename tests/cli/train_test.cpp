#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "support/catch.hpp"
#include "support/json.hpp"
#include "support/program.hpp"
#include "support/temp_folder.hpp"
#include "taper/creation.hpp"
#include "taper/io.hpp"
#include "taper/ops.hpp"

using namespace taper;
using nlohmann::json;

namespace {

/// A folder with 61 points in the plane, in two classes that a line parts, and a config for them.
struct TrainingFolder : TempFolder {
  TrainingFolder() {
    manual_seed(7);
    const Tensor x = randn({61, 2});
    const auto values = x.to_vector<float>();
    std::vector<std::int64_t> y;
    std::string table = "a,b,kind\n";
    for (std::size_t i = 0; i < 61; ++i) {
      y.push_back(values[2 * i] > values[2 * i + 1] ? 1 : 0);
      table += std::to_string(values[2 * i]) + "," + std::to_string(values[2 * i + 1]) + (y[i] ? ",up\n" : ",down\n");
    }
    io::save_npz(*this / "set.npz", {{"x", x}, {"y", from_data(y, {61})}});
    io::save_npy(*this / "new.npy", x.narrow(0, 0, 3));
    write("set.csv", table);
    write("c.json", config("{\"path\": \"set.npz\"}"));
    write("t.json", config("{\"path\": \"set.csv\", \"inputs\": [\"a\", \"b\"], \"targets\": \"kind\"}"));
  }

  static std::string config(const std::string& source) {
    return R"({"model": {"input": {"shape": [2]}, "layers": [
    {"type": "Linear", "out_features": 5}, {"type": "Dropout", "p": 0.1}, {"type": "Tanh"},
    {"type": "Linear", "out_features": 2}]},
  "data": {"train": )" +
           source + R"(, "test": )" + source + R"(, "validation": {"split": 0.2}},
  "loss": {"type": "CrossEntropyLoss"}, "optimizer": {"type": "Adam", "lr": 0.05},
  "train": {"epochs": 5, "batch_size": 7, "seed": 3}, "metrics": ["accuracy"]})";
  }

  Outcome run(std::vector<std::string> arguments) const { return run_taper(path(), arguments); }
};

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < text.size(); at = text.find('\n', at) + 1)
    lines.push_back(text.substr(at, text.find('\n', at) - at));
  return lines;
}

}  // namespace

TEST_CASE("train leaves a run directory and says on standard output where") {
  const TrainingFolder folder;
  const Outcome outcome = folder.run({"train", "c.json"});
  CHECK(outcome.exit == 0);
  CHECK(outcome.out == "runs/c/0001\n");
  const auto said = lines_of(outcome.err);
  REQUIRE(said.size() > 6);
  CHECK(said[0] == "runs/c/0001: 27 parameters, 49 training samples, 12 for validation");
  CHECK(said[1].starts_with("epoch 1/5 lr 0.05 loss "));
  CHECK(said[5].starts_with("epoch 5/5 lr 0.05 loss "));
  const json test = taper::test::parsed(slurp(folder / "runs/c/0001/eval/test.json"));
  CHECK(test["samples"] == 61);
  CHECK(test["metrics"]["accuracy"] > 0.9);
  CHECK(lines_of(slurp(folder / "runs/c/0001/eval/predictions.csv")).size() == 62);
  CHECK(lines_of(slurp(folder / "runs/c/0001/eval/confusion.csv"))[0] == "target,0,1");
  const json env = taper::test::parsed(slurp(folder / "runs/c/0001/env.json"));
  CHECK(env["command_line"] == "taper train c.json");

  const Outcome quiet = folder.run({"train", "c.json", "-q"});
  CHECK(quiet.out == "runs/c/0002\n");
  CHECK(quiet.err == "");
}

TEST_CASE("a bar is drawn within the width, and not where nobody sees it move") {
  const TrainingFolder folder;
  const Outcome drawn = folder.run({"train", "c.json", "--out", "a", "--progress", "bar", "--epochs", "2"});
  const std::size_t at = drawn.err.find("\r\x1b[Kepoch 1/2 ");
  REQUIRE(at != std::string::npos);
  const std::string bar = drawn.err.substr(at + 4, drawn.err.find('\r', at + 1) - at - 4);
  CHECK(bar.find(" samples/s ETA 00:") != std::string::npos);
  CHECK(bar.find(" loss ") != std::string::npos);
  CHECK(bar.find(" acc ") != std::string::npos);
  CHECK(std::count_if(bar.begin(), bar.end(), [](char c) { return (c & 0xC0) != 0x80; }) <= 79);
  CHECK(drawn.err.find("\r\x1b[Kepoch 2/2 lr 0.05 loss ") != std::string::npos);
  for (const char* style : {"auto", "line", "none"}) {
    const Outcome plain = folder.run({"train", "c.json", "--out", style, "--progress", style, "--epochs", "2"});
    CHECK(plain.err.find('\r') == std::string::npos);
    CHECK((plain.err.find("epoch 2/2 ") == std::string::npos) == (std::string(style) == "none"));
  }
}

TEST_CASE("eval and predict use a run or a checkpoint") {
  const TrainingFolder folder;
  REQUIRE(folder.run({"train", "c.json", "-q", "--out", "a"}).exit == 0);
  const std::string test = slurp(folder / "a/eval/test.json");
  CHECK(folder.run({"eval", "a", "--json"}).out == test);
  CHECK(folder.run({"eval", "a/checkpoints/last.safetensors", "--data", "set.npz", "--json"}).out == test);
  const Outcome report = folder.run({"eval", "a"});
  CHECK(report.exit == 0);
  CHECK(report.out.starts_with("              precision    recall  f1-score   support\n\n           0     "));
  CHECK(report.out.find("(always the commonest class: 0.5") != std::string::npos);

  const Outcome predicted = folder.run({"predict", "a", "new.npy"});
  CHECK(predicted.exit == 0);
  const auto rows = lines_of(predicted.out);
  REQUIRE(rows.size() == 4);
  CHECK(rows[0] == "index,label,p_0,p_1");
  // The first samples of the test data without their targets.
  const auto tested = lines_of(slurp(folder / "a/eval/predictions.csv"));
  CHECK(tested[0] == "index,target,label,p_0,p_1");
  for (std::size_t i = 1; i < 4; ++i) CHECK(rows[i].substr(1) == tested[i].substr(3));
  CHECK(folder.run({"predict", "a", "new.npy", "--output", "p.npy"}).out == "");
  const Tensor probabilities = io::load_npy(folder / "p.npy");
  CHECK(probabilities.shape() == Shape{3, 2});
  CHECK(std::abs(probabilities.sum().item() - 3) < 1e-5);
  CHECK(folder.run({"predict", "a", "new.npy", "--output", "p.csv"}).exit == 0);
  CHECK(slurp(folder / "p.csv") == predicted.out);
}

TEST_CASE("predict gives a table's classes back under their names") {
  const TrainingFolder folder;
  REQUIRE(folder.run({"train", "t.json", "-q", "--out", "a"}).exit == 0);
  const auto rows = lines_of(folder.run({"predict", "a/checkpoints/last.safetensors", "set.csv"}).out);
  REQUIRE(rows.size() == 62);
  CHECK(rows[0] == "index,label,p_down,p_up");
  CHECK((rows[1].starts_with("0,up,") || rows[1].starts_with("0,down,")));
}

TEST_CASE("a quality gate that is not met ends with 3 after everything is written") {
  const TrainingFolder folder;
  const Outcome missed = folder.run(
      {"train", "c.json", "-q", "--out", "a", "--epochs", "1", "--fail-under", "acc=1.01", "--fail-under", "loss=100"});
  CHECK(missed.exit == 3);
  CHECK(missed.out == "a\n");
  CHECK(missed.err.starts_with("taper: train: quality gate not met: expected test accuracy >= 1.01, got "));
  CHECK(lines_of(missed.err).size() == 1);
  CHECK(slurp(folder / "a/eval/test.json") != "");
  CHECK(folder.run({"train", "c.json", "-q", "--out", "b", "--fail-under", "f1=0.5"}).exit == 0);
  folder.write("v.json", [] {
    std::string text = TrainingFolder::config("{\"path\": \"set.npz\"}");
    const std::string test = R"(, "test": {"path": "set.npz"})";
    return text.erase(text.find(test), test.size());
  }());
  const Outcome validated =
      folder.run({"train", "v.json", "-q", "--out", "d", "--epochs", "1", "--fail-under", "loss=0"});
  CHECK(validated.exit == 3);
  CHECK(validated.err.starts_with("taper: train: quality gate not met: expected validation loss <= 0, got "));
}

TEST_CASE("a training stopped by a signal says how to go on, and ends with the same bytes") {
  const TrainingFolder folder;
  for (const int number : {SIGINT, SIGTERM}) {
    const std::string stopped = "stopped" + std::to_string(number);
    Program program(folder.path(), {"train", "c.json", "--out", stopped, "--epochs", "50"});
    for (int i = 0; i < 2000 && program.err().find("epoch 2/") == std::string::npos; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    ::kill(program.id(), number);
    const Outcome outcome = program.wait();
    CHECK(outcome.exit == 128 + number);
    CHECK(outcome.out == stopped + "\n");
    CHECK(lines_of(outcome.err).back() == "stopped and saved; go on with: taper train --resume " + stopped);
    const Outcome resumed = folder.run({"train", "--resume", stopped});
    CHECK(resumed.exit == 0);
    CHECK(resumed.err.find("goes on after epoch ") != std::string::npos);
    if (number == SIGINT) REQUIRE(folder.run({"train", "c.json", "-q", "--out", "whole", "--epochs", "50"}).exit == 0);
    CHECK(slurp(folder / (stopped + "/checkpoints/last.safetensors")) ==
          slurp(folder / "whole/checkpoints/last.safetensors"));
  }
}

TEST_CASE("train refuses what cannot be meant") {
  const TrainingFolder folder;
  struct Wrong {
    std::vector<std::string> arguments;
    int exit;
    std::string sentence;
  };
  REQUIRE(folder.run({"train", "c.json", "-q", "--out", "old", "--epochs", "1"}).exit == 0);
  const std::vector<Wrong> all = {
      {{}, 2, "train: what to train is not clear: expected CONFIG or --resume RUN, got neither"},
      {{"c.json", "--resume", "old"},
       2,
       "train: what to train is not clear: expected CONFIG or --resume RUN, got both"},
      {{"c.json", "--force"}, 2, "train: --force replaces the run in --out: expected --out DIR, got none"},
      {{"--resume", "old", "--out", "b"},
       2,
       "train: --resume continues in its own directory: expected no --out and no --force, got one of them"},
      {{"none.json"}, 2, "none.json: cannot read: No such file or directory"},
      {{"c.json", "--epochs", "0"}, 2, "train: --epochs: not a number it takes: expected an integer >= 1, got 0"},
      {{"c.json", "--progress", "baar"},
       2,
       "train: --progress: unknown word: expected auto, bar, line or none, got baar; did you mean bar?"},
      {{"c.json", "--set", "lr"}, 2, "train: --set takes a key and its value: expected a.b=value, got lr"},
      {{"c.json", "--fail-under", "acc"},
       2,
       "train: --fail-under has no number: expected acc=0.95 or its like, got acc"},
      {{"c.json", "--fail-under", "acc=high"},
       2,
       "train: --fail-under has no number: expected acc=0.95 or its like, got acc=high"},
      {{"c.json", "--fail-under", "acuracy=1"},
       2,
       "train: --fail-under names no metric: expected loss, acc, f1 or another metric, got acuracy; did you mean "
       "accuracy?"},
      {{"c.json", "--out", "old"},
       1,
       "old: the folder is not empty: expected a new or an empty one; use --force to replace the run"},
      {{"c.json", "--out", "n", "--set", "data.train.path=none.npz"},
       1,
       "none.npz: cannot read: No such file or directory"},
  };
  for (const Wrong& wrong : all) {
    std::vector<std::string> arguments{"train"};
    arguments.insert(arguments.end(), wrong.arguments.begin(), wrong.arguments.end());
    const Outcome outcome = folder.run(arguments);
    CHECK(outcome.err == "taper: " + wrong.sentence + "\n");
    CHECK(outcome.exit == wrong.exit);
    CHECK(outcome.out == "");
  }
  CHECK(folder.run({"train", "c.json", "-q", "--out", "old", "--force", "--epochs", "1"}).exit == 0);
  const Outcome other = folder.run({"train", "c.json", "--set", "optimizer.lr=-1"});
  CHECK(other.exit == 2);
  CHECK(other.err.find("/optimizer/lr") != std::string::npos);
}

TEST_CASE("a run directory that cannot be written is refused before training") {
  const TrainingFolder folder;
  folder.write("file", "");
  const Outcome outcome = folder.run({"train", "c.json", "--out", "file/run"});
  CHECK(outcome.exit == 1);
  CHECK(outcome.out == "");
  CHECK(outcome.err.find("Not a directory") != std::string::npos);
  if (::geteuid() == 0) return;  // root writes anywhere
  REQUIRE(::mkdir((folder / "locked").c_str(), 0500) == 0);
  const Outcome locked = folder.run({"train", "c.json", "--out", "locked/run"});
  CHECK(locked.exit == 1);
  CHECK(locked.err.find("Permission denied") != std::string::npos);
}

TEST_CASE("a training whose reader left goes on to its end") {
  const TrainingFolder folder;
  const std::string fifo = folder / "pipe";
  REQUIRE(::mkfifo(fifo.c_str(), 0600) == 0);
  const int reader = ::open(fifo.c_str(), O_RDONLY | O_NONBLOCK);
  Program program(folder.path(), {"train", "c.json", "-q", "--out", "a"}, fifo);
  ::close(reader);
  CHECK(program.wait().exit == 0);
  CHECK(slurp(folder / "a/eval/test.json") != "");
}

TEST_CASE("an epoch of the residual example trains") {
  const TempFolder folder;
  const Outcome outcome =
      run_taper(TAPER_SOURCE_DIR, {"train", "examples/configs/residual.json", "--epochs", "1", "--out", folder / "run",
                                   "--progress", "none", "--fail-under", "acc=0.8"});
  INFO(outcome.err);
  CHECK(outcome.exit == 0);
}

TEST_CASE("a model of indices trains, is evaluated and predicts; numbers that are no indices are refused") {
  const TempFolder folder;
  const auto save = [&](const char* file, double last) {
    Tensor words = zeros({60, 5}), classes = zeros({60}, DType::int64);
    for (std::int64_t i = 0; i < 300; ++i) words.data<float>()[i] = float((i / 5 * 7 + i % 5 * (1 + i / 5 % 2)) % 11);
    for (std::int64_t i = 0; i < 60; ++i) classes.data<std::int64_t>()[i] = words.data<float>()[5 * i] < 5;
    words.data<float>()[299] = float(last);
    io::save_npy(folder / file, words);
    io::save_npy(folder / "y.npy", classes);
  };
  save("x.npy", 3);
  save("half.npy", 0.5);
  save("large.npy", 11);
  folder.write("c.json", R"({
    "model": {"input": {"shape": [5], "dtype": "int64"}, "layers": [
      {"type": "Embedding", "num_embeddings": 11, "embedding_dim": 3}, {"type": "Flatten"},
      {"type": "Linear", "out_features": 2}]},
    "data": {"train": {"path": "x.npy", "targets": "y.npy"}, "test": {"path": "x.npy", "targets": "y.npy"}},
    "loss": {"type": "CrossEntropyLoss"}, "optimizer": {"type": "Adam", "lr": 0.05},
    "train": {"epochs": 20, "batch_size": 7, "seed": 1}, "metrics": ["accuracy"]})");
  const auto train = [&](const char* inputs) {
    return run_taper(folder.path(), {"train", "c.json", "--out", "run", "--force", "--progress", "none", "--fail-under",
                                     "acc=0.9", "--set", std::string("data.train.path=") + inputs});
  };
  const Outcome trained = train("x.npy");
  INFO(trained.err);
  CHECK(trained.exit == 0);
  const Outcome predicted = run_taper(folder.path(), {"predict", "run", "x.npy"});
  CHECK(predicted.err == "");
  CHECK(std::count(predicted.out.begin(), predicted.out.end(), '\n') == 61);
  CHECK(train("half.npy")
            .err.find("/data/train: input 299 is no index: expected a whole number of at most 2^24, got 0.5") !=
        std::string::npos);
  CHECK(train("large.npy").err.find("embedding: index out of range: expected 0 to 10, got 11 at [") !=
        std::string::npos);
}
