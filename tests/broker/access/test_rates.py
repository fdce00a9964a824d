"""Rates and token buckets, step by step as Kafka's own classes compute them (core G.10)."""

import pytest

from broker.access.rates import Rate, TokenBucket, Windows, rounded

START_MS = 1_700_000_000_000
BOUND = 500
STEPS = [
    (0, 1), (1193, 1), (1, -50), (1158, 1), (1199, 100), (1, 4676), (1396, 1), (0, -50), (3183, -50), (23, 1),
    (2027, 3676), (999, 1351), (1, 4571), (1000, -50), (1, 497), (1000, -50), (1000, 100), (239, 100), (1000, 100),
    (28, 3526), (999, 100), (360, -50), (0, -50), (2319, 1), (999, -50), (0, 1), (450, 1), (1, 1), (4, 2066), (1,
    -50), (30, 837), (47, 1), (0, 4326), (1425, 4246), (2181, 100), (1000, 1), (572, 4957), (3911, 100), (805, -50),
    (1963, 1),
]  # fmt: skip
"""Ms that pass, and what is recorded then."""

# What Rate and TokenBucket of Apache Kafka 4.3.1 returned after each step: rates, the ms they are measured over, tokens
RATES_11 = [
    0.1, 0.19621308741293045, -4.7086521483225425, -4.540185471406492, 5.023220547815373, 448.1614859742229,
    432.0423821702594, 427.47533796127146, 457.0131280229, 456.07642308449874, 815.9316373637168, 878.9478474560844,
    1294.8671277757555, 1290.3167091372407, 1335.4263354263353, 1354.9399815327793, 1389.6152760793905,
    1368.2612695492182, 973.6465196218847, 1306.8279211503666, 1344.576911892992, 1294.558396553339,
    1289.8754331741127, 1252.5463805020006, 1258.2914572864322, 1258.3828232069438, 1325.060125060125,
    1325.0288572527895, 1523.173076923077, 1518.2194019805788, 1594.0945259323173, 1587.0395113571292,
    1999.9045619393014, 2117.1973452070906, 1518.0005950609936, 1381.1242443381755, 1926.2672811059906,
    1557.1038508615006, 1443.0246805531244, 896.7599693251533,
]  # fmt: skip
OVER_MS_11 = [
    10000, 10193, 10194, 10352, 10551, 10552, 10948, 10948, 10131, 10154, 10181, 10987, 10988, 10988, 10989, 10830,
    10631, 10870, 10473, 10501, 10317, 10677, 10677, 10996, 10945, 10945, 10395, 10396, 10400, 10401, 10431, 10478,
    10478, 11903, 10083, 11083, 10416, 10621, 11426, 10432,
]  # fmt: skip
TOKENS_11 = [
    5497.0, 5497.0, 5347.5, 5497.0, 5200.0, -8827.5, -8132.5, -8282.5, -6841.0, -6832.5, -16847.0, -20400.5,
    -34113.0, -33763.0, -35253.5, -34903.5, -34703.5, -34884.0, -34684.0, -45248.0, -45048.5, -45018.5, -45168.5,
    -44012.0, -43662.5, -43665.5, -43443.5, -43446.0, -49642.0, -49791.5, -52287.5, -52267.0, -65245.0, -77270.5,
    -76480.0, -75983.0, -90568.0, -88912.5, -88660.0, -87681.5,
]  # fmt: skip
RATES_3 = [
    0.5, 0.9119927040583675, -21.877848678213308, -19.982993197278912, 22.05258693808312, 2004.2390843577787,
    1840.5238828967642, 1821.2634822804314, -25.0, -24.22145328719723, 1769.268292682927, 1676.2254084694898,
    4799.0, 4774.0, 5019.990004997501, 3330.5564811729423, 248.37581209395304, 266.5178571428571,
    111.65698972755695, 1665.637406263785, 1732.568402471315, 1476.009139375476, 1456.968773800457,
    0.3732736095558044, -16.33877959319773, -16.0053351117039, -19.191506737443856, -18.77551020408163,
    823.1458842705786, 802.4439918533604, 1129.5774647887324, 1109.0047393364928, 2817.5355450236966,
    3848.495096381468, 1992.6639156350298, 50.5, 1966.5629860031104, 50.0, 17.825311942959, 18.42485549132948,
]  # fmt: skip
OVER_MS_3 = [
    2000, 2193, 2194, 2352, 2358, 2359, 2596, 2596, 2000, 2023, 2050, 2999, 2000, 2000, 2001, 3001, 2001, 2240,
    2239, 2267, 2266, 2626, 2626, 2679, 2999, 2999, 2449, 2450, 2454, 2455, 2485, 2532, 2532, 2957, 2181, 2000,
    2572, 2000, 2805, 2768,
]  # fmt: skip
TOKENS_3 = [
    1497.0, 1497.0, 1347.5, 1497.0, 1200.0, -12827.5, -12132.5, -12282.5, -10841.0, -10832.5, -20847.0, -24400.5,
    -38113.0, -37763.0, -39253.5, -38903.5, -38703.5, -38884.0, -38684.0, -49248.0, -49048.5, -49018.5, -49168.5,
    -48012.0, -47662.5, -47665.5, -47443.5, -47446.0, -53642.0, -53791.5, -56287.5, -56267.0, -69245.0, -81270.5,
    -80480.0, -79983.0, -94568.0, -92912.5, -92660.0, -91681.5,
]  # fmt: skip


@pytest.mark.parametrize(("windows", "rates", "over_ms"), [(11, RATES_11, OVER_MS_11), (3, RATES_3, OVER_MS_3)])
def test_a_rate_is_kafkas(windows: int, rates: list[float], over_ms: list[int]) -> None:
    """With the default number of windows, and with few."""
    rate, now_ms, measured = Rate(Windows(windows, 1_000)), START_MS, []
    for passes_ms, value in STEPS:
        now_ms += passes_ms
        rate.record(value, now_ms)
        measured.append(rate.measured(now_ms))
    assert measured == list(zip(rates, over_ms, strict=True))


@pytest.mark.parametrize(("windows", "tokens"), [(11, TOKENS_11), (3, TOKENS_3)])
def test_a_token_bucket_is_kafkas(windows: int, tokens: list[float]) -> None:
    """A client that owes tokens waits until they have come; a bucket saves no more than all windows bring."""
    bucket, now_ms = TokenBucket(Windows(windows, 1_000)), START_MS
    for (passes_ms, value), left in zip(STEPS, tokens, strict=True):
        now_ms += passes_ms
        bucket.record(abs(value) * 3, BOUND, now_ms)
        assert bucket.throttle_ms(BOUND, now_ms) == (rounded(-left / BOUND * 1_000) if left < 0 else 0)
    assert min(tokens) < 0


def test_who_is_above_the_bound_waits_until_it_is_kept() -> None:
    """20,480 bytes at 1,000 a second, spread over ten seconds, are 10,480 ms too many."""
    rate = Rate(Windows(11, 1_000))
    rate.record(10_000, START_MS)
    assert rate.throttle_ms(1_000, START_MS) == 0
    rate.record(10_480, START_MS)
    assert rate.throttle_ms(1_000, START_MS) == 10_480


def test_no_throttle_time_exceeds_its_field() -> None:
    """No throttle time is larger than ThrottleTimeMs can hold, which has 31 bits."""
    rate, bucket = Rate(Windows(11, 1_000)), TokenBucket(Windows(11, 1_000))
    rate.record(1e15, START_MS)
    bucket.record(1e15, 1, START_MS)
    assert rate.throttle_ms(1, START_MS) == bucket.throttle_ms(1, START_MS) == 2**31 - 1


def test_halves_go_up() -> None:
    """Half a millisecond is rounded up, as ``Math.round`` does."""
    assert [rounded(each) for each in (0.5, 1.5, 2.5, -0.5, 2.4)] == [1, 2, 3, 0, 2]
