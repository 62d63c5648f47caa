"""Golden values of the data package: tables as Python's csv and NumPy read and scale them, images as PIL decodes and resizes them.

    /usr/bin/python3 tooling/goldens/data.py packages/data/src/fixtures

writes goldens.json; the committed file was made with Python 3.11, NumPy 1.24.2 and Pillow 9.4.0 (Debian 12).
"""
import base64
import csv
import io
import json
import random
import sys

import numpy as np
from PIL import Image

random.seed(1)
rng = np.random.default_rng(1)


def tables():
    """Files that csv.writer wrote in several dialects, and what csv.reader reads in them."""
    letters = ["a", "B", " ", ",", '"', "\n", "\r\n", "é", "漢", "😀", ";", "\t", "0", "1.5", "-2e3", ""]
    found = []
    for number in range(40):
        width = random.randint(1, 5)
        rows = [["".join(random.choices(letters, k=random.randint(0, 6))) for _ in range(width)] for _ in range(random.randint(1, 8))]
        names = [f"c{i}" for i in range(width)]
        delimiter, end = random.choice([",", ";", "\t"]), random.choice(["\n", "\r\n"])
        text = io.StringIO()
        writer = csv.writer(text, delimiter=delimiter, lineterminator=end, quoting=random.choice([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]))
        writer.writerows([names, *rows])
        read = [row for row in csv.reader(io.StringIO(text.getvalue(), newline=""), delimiter=delimiter) if row]
        found.append({"text": text.getvalue(), "delimiter": delimiter, "rows": read[1:]})
    return found


def normalisation():
    rows = rng.normal(3, 7, (50, 4)).round(6)
    rows[:, 2] = 5
    images = rng.normal(0, 2, (6, 3, 2, 4)).round(6)
    return {
        "rows": rows.tolist(),
        "mean": rows.mean(0).tolist(),
        "std": rows.std(0).tolist(),
        "images": images.tolist(),
        "channel_mean": images.mean((0, 2, 3)).tolist(),
        "channel_std": images.std((0, 2, 3)).tolist(),
    }


def packed(array):
    return {"shape": list(array.shape), "data": base64.b64encode(np.ascontiguousarray(array, dtype=np.uint8).tobytes()).decode()}


def planar(image):
    array = np.asarray(image)
    return packed(array[None] if array.ndim == 2 else array.transpose(2, 0, 1))


def file_of(image, kind, **options):
    out = io.BytesIO()
    image.save(out, kind, **options)
    return out.getvalue()


def pictures():
    y, x = np.mgrid[0:37, 0:50]
    smooth = np.stack([(x * 5) % 256, (y * 6) % 256, ((x + y) * 2) % 256], -1).astype(np.uint8)
    noise = rng.integers(0, 256, (23, 31, 3), dtype=np.uint8)
    waves = (np.stack([np.sin(x / 9), np.cos(y / 7), np.sin((x + y) / 11)], -1) * 100 + 128).astype(np.uint8)
    made = []

    def add(name, kind, image, tolerance=0, decoded=None, **options):
        data = file_of(image, kind, **options)
        expected = decoded if decoded is not None else Image.open(io.BytesIO(data))
        made.append({"name": name, "file": base64.b64encode(data).decode(), "tolerance": tolerance, **planar(expected)})

    rgb = Image.fromarray(smooth)
    add("rgb", "PNG", rgb)
    add("noise", "PNG", Image.fromarray(noise))
    add("grey", "PNG", rgb.convert("L"))
    alpha = rgb.convert("RGBA")
    alpha.putalpha(Image.fromarray(((x * 7) % 256).astype(np.uint8)))
    add("rgba", "PNG", alpha)
    add("grey with alpha", "PNG", alpha.convert("LA"))
    palette = rgb.quantize(40)
    add("palette", "PNG", palette, decoded=palette.convert("RGB"))
    small = rgb.quantize(4)
    add("palette of 2 bits", "PNG", small, decoded=small.convert("RGB"), bits=2)
    add("one bit", "PNG", rgb.convert("1"), decoded=rgb.convert("1").convert("L"))
    deep = (np.arange(48 * 33, dtype=np.uint16).reshape(33, 48) * 41)
    data = file_of(Image.fromarray(deep), "PNG")
    made.append({"name": "16 bits", "file": base64.b64encode(data).decode(), "tolerance": 0, **packed(np.round(deep / 257.0)[None])})
    for quality in (60, 95):
        add(f"jpeg {quality}", "JPEG", Image.fromarray(waves), tolerance=4, quality=quality, subsampling=0)
    add("jpeg progressive", "JPEG", Image.fromarray(waves), tolerance=4, quality=90, subsampling=0, progressive=True)
    # Colours at half the resolution: libjpeg interpolates them, jpeg-js repeats them. Two of them differ by 29 here at most (2 pixels of a
    # slope of 100 / 7), a quarter of which is between the two ways; blue takes it 1.772 times, and 4 is for rounding.
    add("jpeg 4:2:0", "JPEG", Image.fromarray(waves), tolerance=17, quality=90, subsampling=2)
    grey = Image.fromarray(waves).convert("L")
    add("jpeg grey", "JPEG", grey, tolerance=4, decoded=grey_of_jpeg(grey), quality=90)
    as_grey = [{"name": "noise to grey", "source": "noise", **planar(Image.fromarray(noise).convert("L"))}]
    sizes = [(23, 31), (46, 62), (10, 12), (5, 40), (100, 7), (1, 1)]
    resized = []
    for height, width in sizes:
        for name, how in (("bilinear", Image.BILINEAR), ("nearest", Image.NEAREST)):
            resized.append({"size": [height, width], "resizing": name, **planar(Image.fromarray(noise).resize((width, height), how))})
    return {"files": made, "grey": as_grey, "resized": resized}


def grey_of_jpeg(image):
    """Three equal channels: what the decoder gives for a grey JPEG."""
    return Image.open(io.BytesIO(file_of(image, "JPEG", quality=90))).convert("RGB")


with open(f"{sys.argv[1]}/goldens.json", "w", encoding="utf-8") as file:
    json.dump({"tables": tables(), "normalisation": normalisation(), **pictures()}, file, ensure_ascii=False, separators=(",", ":"))
    file.write("\n")
