#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Draws input.ppm: hills at dusk over water. Run it to draw the picture again."""
import math
import pathlib
import random

WIDTH, HEIGHT = 192, 128


def ridge(x, seed, base, height):
    """The height of a ridge at x: a few sines with fixed phases."""
    rng = random.Random(seed)
    total = 0.0
    for octave in range(1, 6):
        total += math.sin(x * octave * 0.021 * rng.uniform(0.7, 1.3) + rng.uniform(0, 6.3)) / octave
    return base - height * total


def pixel(x, y, rng):
    up = y / HEIGHT
    red, green, blue = 250 - 120 * (1 - up), 140 + 60 * up - 40 * (1 - up), 120 + 90 * (1 - up)
    sun = math.hypot(x - 134, y - 44)
    glow = max(0.0, 1 - sun / 60) ** 2
    red, green, blue = red + 60 * glow, green + 80 * glow, blue + 20 * glow
    if sun < 9:
        red, green, blue = 255, 240, 200
    for seed, base, height, shade in ((1, 66, 9, 0.62), (2, 78, 8, 0.42), (3, 88, 6, 0.24)):
        if y > ridge(x, seed, base, height):
            red, green, blue = 150 * shade, 130 * shade, 190 * shade
    if y > 98:
        wave = math.sin(y * y * 0.02 + x * 0.06) * 14
        sparkle = 120 * max(0.0, 1 - abs(x - 134) / (6 + (y - 98))) * (0.5 + 0.5 * math.sin(y * 2.1))
        red, green, blue = 60 + wave + sparkle, 66 + wave + sparkle * 0.8, 108 + wave + sparkle * 0.4
    noise = rng.uniform(-6, 6)
    return bytes(int(min(255, max(0, value + noise))) for value in (red, green, blue))


def main():
    rng = random.Random(2026)
    rows = b"".join(pixel(x, y, rng) for y in range(HEIGHT) for x in range(WIDTH))
    path = pathlib.Path(__file__).with_name("input.ppm")
    path.write_bytes(b"P6\n%d %d\n255\n" % (WIDTH, HEIGHT) + rows)


if __name__ == "__main__":
    main()
