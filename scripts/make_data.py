"""Makes the two data sets of the repository: data/japanese_vowels.npz and data/digits.npz.

Both are copied, without change of values, from Python packages that carry them, so nothing is downloaded at run time:

    pip install aeon scikit-learn numpy
    python scripts/make_data.py            # writes into data/ beside this script's directory

Every archive holds x_train, y_train, x_test, y_test: inputs as float32, labels as int64 from 0. The archives are
written with fixed time stamps and a fixed order of members, so the same packages give the same bytes.
data/README.md tells where the data come from and under which licence.
"""

import argparse
import io
import pathlib
import zipfile

import aeon.datasets
import numpy as np
import sklearn.datasets

TEST_EVERY = 5


def japanese_vowels():
    """The equal-length version: 270 and 370 sequences of 12 channels and 25 steps, 9 speakers."""
    folder = pathlib.Path(aeon.datasets.__file__).parent / "data" / "JapaneseVowels"
    arrays = {}
    for part in ("train", "test"):
        inputs, labels = aeon.datasets.load_from_ts_file(str(folder / f"JapaneseVowels_eq_{part.upper()}.ts"))
        arrays[f"x_{part}"] = inputs
        arrays[f"y_{part}"] = labels.astype(np.int64) - 1
    return arrays


def digits():
    """1797 images of 1 x 8 x 8 pixels, 10 digits; within each class every fifth image is a test image."""
    images, labels = sklearn.datasets.load_digits(return_X_y=True)
    images = images.reshape(-1, 1, 8, 8)
    test = np.zeros(len(labels), dtype=bool)
    for label in np.unique(labels):
        test[np.flatnonzero(labels == label)[TEST_EVERY - 1 :: TEST_EVERY]] = True
    return {"x_train": images[~test], "y_train": labels[~test], "x_test": images[test], "y_test": labels[test]}


def write_npz(path, arrays):
    """np.savez_compressed stamps the time of writing; this writes the same layout with a constant one."""
    with zipfile.ZipFile(path, "w") as archive:
        for name in ("x_train", "y_train", "x_test", "y_test"):
            values = np.ascontiguousarray(arrays[name], dtype=np.float32 if name.startswith("x") else np.int64)
            buffer = io.BytesIO()
            np.lib.format.write_array(buffer, values, version=(1, 0), allow_pickle=False)
            member = zipfile.ZipInfo(f"{name}.npy", date_time=(1980, 1, 1, 0, 0, 0))
            member.create_system = 3
            member.external_attr = 0o644 << 16
            archive.writestr(member, buffer.getvalue(), compress_type=zipfile.ZIP_DEFLATED, compresslevel=9)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    default = pathlib.Path(__file__).resolve().parent.parent / "data"
    parser.add_argument("--out", type=pathlib.Path, default=default, help="directory to write into")
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    for name, make in (("japanese_vowels", japanese_vowels), ("digits", digits)):
        arrays = make()
        write_npz(out / f"{name}.npz", arrays)
        shapes = ", ".join(f"{key} {list(value.shape)}" for key, value in arrays.items())
        print(f"{name}.npz: {shapes}, {(out / f'{name}.npz').stat().st_size} bytes")


if __name__ == "__main__":
    main()
