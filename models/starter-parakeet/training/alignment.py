"""The states that a transducer's decoding can reach along a CTC alignment, and what it should answer there."""

import numpy as np
from numba import njit, prange

LONGEST = 4  # frames that one answer can go on


@njit(parallel=True, cache=True)
def first_frames(scores, frames, tokens):
    """CTC's best path (Viterbi): the first frame of each token, -1 where the tokens don't fit.

    `scores` (rows, most frames, 1 + longest): logarithms of the probabilities of blank and of each of a row's
    tokens; `frames` (rows): how many a row has; `tokens` (rows, longest), -1 behind a row's last.
    """
    rows, _, width = scores.shape
    result = np.full((rows, width - 1), -1, dtype=np.int64)
    for row in prange(rows):
        count = 0
        while count < width - 1 and tokens[row, count] >= 0:
            count += 1
        if count == 0:
            continue
        states = 2 * count + 1
        best = np.full(states, -1e30)
        length = frames[row]
        came = np.zeros((length, states), dtype=np.int8)
        best[0], best[1] = scores[row, 0, 0], scores[row, 0, 1]
        for t in range(1, length):
            before = best.copy()
            for state in range(states):
                score, step = before[state], 0
                if state >= 1 and before[state - 1] > score:
                    score, step = before[state - 1], 1
                token = (state - 1) // 2
                if state % 2 == 1 and state >= 3 and tokens[row, token] != tokens[row, token - 1]:
                    if before[state - 2] > score:
                        score, step = before[state - 2], 2
                best[state] = score + scores[row, t, token + 1 if state % 2 == 1 else 0]
                came[t, state] = step
        state = states - 1 if best[states - 1] >= best[states - 2] else states - 2
        if best[state] < -1e29:
            continue
        for t in range(length - 1, -1, -1):
            if state % 2 == 1:
                result[row, state // 2] = t
            state -= came[t, state]
    return result


@njit(cache=True)
def row_of_states(row, frames, firsts, tokens, count, blank, out, at):
    done = 0
    for t in range(frames):
        while True:
            following = firsts[done] if done < count else frames
            emits = done < count and following == t
            if emits:
                ahead = firsts[done + 1] if done + 1 < count else frames
                out[at] = (row, t, done, tokens[done], min(LONGEST, ahead - t))
                at += 1
                done += 1
                # Decoding that jumped one or two frames too far makes up for it. Not between two equal tokens:
                # the prediction network can hardly tell whether the first was already written.
                if done < 2 or tokens[done - 1] != tokens[done - 2]:
                    for late in range(t + 1, min(t + 3, ahead)):
                        out[at] = (row, late, done - 1, tokens[done - 1], min(LONGEST, ahead - late))
                        at += 1
            else:
                out[at] = (row, t, done, blank, max(1, min(LONGEST, following - t)))
                at += 1
                break
    return at


def states(firsts, tokens, frames, blank):
    """(states, 5): row, frame, tokens before it, token to write (or blank), frames to go on.

    `firsts` and `tokens`: of each row, the frames of its tokens in order (None: not known, the row is left out) and
    the tokens. Every frame appears with the tokens that lie before it, not only those where the best answers stop,
    so that decoding finds its way back from a wrong jump.
    """
    most = sum(frames + 3 * len(row) + 3 for row in tokens)
    out, at = np.zeros((most, 5), dtype=np.int64), 0
    for row, (found, wanted) in enumerate(zip(firsts, tokens)):
        if found is None:
            continue
        padded = np.array([*found, 0], dtype=np.int64), np.array([*wanted, 0], dtype=np.int64)
        at = row_of_states(row, frames, *padded, len(wanted), blank, out, at)
    return out[:at]
