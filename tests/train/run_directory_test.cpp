#include "train/run_directory.hpp"

#include <unistd.h>

#include <filesystem>

#include "support/catch.hpp"
#include "support/message_of.hpp"
#include "support/temp_folder.hpp"

using taper::train::RunDirectory;
namespace fs = std::filesystem;

TEST_CASE("runs are numbered, and latest points to the newest") {
  TempFolder folder;
  const std::string root = folder / "runs";
  CHECK(RunDirectory::create("forum", root).path() == root + "/forum/0001");
  CHECK(fs::read_symlink(root + "/forum/latest") == "0001");
  CHECK(RunDirectory::create("forum", root).path() == root + "/forum/0002");
  CHECK(fs::read_symlink(root + "/forum/latest") == "0002");
  fs::create_directory(root + "/forum/0041");
  CHECK(RunDirectory::create("forum", root).path() == root + "/forum/0042");
  CHECK(RunDirectory::create("other", root).path() == root + "/other/0001");
  CHECK(fs::is_directory(root + "/other/0001/checkpoints"));
}

TEST_CASE("a folder that holds something is refused unless it may be replaced") {
  TempFolder folder;
  const std::string path = folder / "run";
  { RunDirectory::create_at(path).write("metrics.csv", "epoch\n1\n"); }
  const std::string file = folder.write("run/mine.txt", "mine");
  CHECK(taper::test::message_of([&] { RunDirectory::create_at(path); }) ==
        path + ": the folder is not empty: expected a new or an empty one; use --force to replace the run");
  CHECK(fs::exists(path + "/metrics.csv"));
  RunDirectory::create_at(path, true);
  CHECK_FALSE(fs::exists(path + "/metrics.csv"));
  CHECK(slurp(file) == "mine");
  CHECK(taper::test::message_of([&] { RunDirectory::create_at(file); }) ==
        file + ": cannot hold a run: expected a folder, got a file");
}

TEST_CASE("a second run in one folder is refused as long as the first lives") {
  TempFolder folder;
  const std::string path = folder / "run";
  const std::string refusal = path + ": another run is writing here; wait for its end or choose another folder";
  {
    const RunDirectory first = RunDirectory::create_at(path);
    CHECK(taper::test::message_of([&] { RunDirectory::create_at(path, true); }) == refusal);
    CHECK(taper::test::message_of([&] { RunDirectory::open(path); }) == refusal);
  }
  CHECK(RunDirectory::open(path).path() == path);
}

TEST_CASE("a folder that cannot be written is refused") {
  if (::geteuid() == 0) return;  // nothing is closed to the administrator
  TempFolder folder;
  fs::permissions(folder.path(), fs::perms::owner_read | fs::perms::owner_exec);
  CHECK(taper::test::message_of([&] { RunDirectory::create("a", folder.path()); }) ==
        folder.path() + "/a: cannot create the folder: Permission denied");
  fs::permissions(folder.path(), fs::perms::owner_all);
}

TEST_CASE("what is no run cannot be opened") {
  TempFolder folder;
  CHECK(taper::test::message_of([&] { RunDirectory::open(folder.path()); }) ==
        folder.path() + ": not a run: expected a folder with checkpoints/last.safetensors");
}

TEST_CASE("opening a run removes the temporary files of a killed one") {
  TempFolder folder;
  const std::string path = folder / "run";
  { RunDirectory::create_at(path); }
  folder.write("run/checkpoints/.taper-1-1.tmp", "half a file");
  RunDirectory::open(path);
  CHECK(fs::is_empty(path + "/checkpoints"));
}

TEST_CASE("metrics start with their header and keep the rows of finished epochs") {
  TempFolder folder;
  const RunDirectory run = RunDirectory::create_at(folder / "run");
  run.start_metrics({"epoch", "lr"}, 0);
  CHECK(slurp(run.file("metrics.csv")) == "epoch,lr\n");
  for (const char* row : {"1,0.5", "2,0.25", "3,0.1"}) run.append("metrics.csv", row);
  run.start_metrics({"epoch", "lr"}, 2);
  CHECK(slurp(run.file("metrics.csv")) == "epoch,lr\n1,0.5\n2,0.25\n");
  CHECK(taper::test::message_of([&] {
          run.start_metrics({"epoch", "train_loss"}, 2);
        }) == run.file("metrics.csv") + ": the run has other columns: expected epoch,train_loss, got epoch,lr");
  run.start_metrics({"epoch"}, 0);
  CHECK(slurp(run.file("metrics.csv")) == "epoch\n");
}
