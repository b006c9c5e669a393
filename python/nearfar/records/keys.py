"""Unit and direction of every numeric key of the schema.

``nearfar compare`` reads from this table whether a higher or a lower value is better, or neither
(sizes, counts, settings, ratios of two measurements). A figure about nearfar itself, such as the
speed of the simulator, is not compared. ``tests/test_keys.py`` walks all models and fails on a key
that the table does not contain.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Direction = Literal["higher", "lower"]


@dataclass(frozen=True)
class Key:
    """Meaning of one key. ``better`` is None if it has no direction."""

    unit: str
    better: Direction | None = None
    compared: bool = True


#: Unit, which values are better, and the keys.
_DIRECTED: tuple[tuple[str, Direction | None, str], ...] = (
    (
        "B/s",
        "higher",
        """
        bandwidth_bytes_per_s best_bandwidth_bytes_per_s median_bandwidth_bytes_per_s
        near_bandwidth_bytes_per_s far_bandwidth_bytes_per_s near_peak_bytes_per_s
        far_peak_bytes_per_s sum_bandwidth_bytes_per_s
        near_alone_bandwidth_bytes_per_s far_alone_bandwidth_bytes_per_s
        together_bandwidth_bytes_per_s near_copy_bandwidth_bytes_per_s
        far_read_bandwidth_bytes_per_s transfer_bandwidth_bytes_per_s rate_bytes_per_s
        read_bandwidth_bytes_per_s write_bandwidth_bytes_per_s""",
    ),
    ("B/s", None, "offered_bytes_per_s background_bytes_per_s"),
    ("1/s", "higher", "ops_per_s"),
    (
        "ns",
        "lower",
        """
        latency_ns mean_latency_ns least_latency_ns largest_latency_ns dependent_latency_ns
        batched_latency_ns
        p50_latency_ns p90_latency_ns p99_latency_ns p999_latency_ns p9999_latency_ns
        idle_latency_ns read_latency_ns predicted_latency_ns near_latency_ns far_latency_ns
        near_page_walk_ns far_page_walk_ns observed_latency_ns
        fault_time_ns pair_time_ns
        fence_ns flush_fence_ns per_fence_ns per_line_ns stall_ns worst_cpu_ns""",
    ),
    ("ns", None, "instruction_ns task_clock_ns read_latency_histogram"),
    (
        "s",
        "lower",
        """
        time_s total_time_s near_time_s far_time_s near_alone_time_s far_alone_time_s
        near_element_time_s generate_time_s generate_alone_time_s generate_idle_time_s
        transfer_time_s transfer_idle_time_s analyse_time_s analyse_alone_time_s
        all_near_time_s all_far_time_s whole_sites_time_s uniform_time_s
        default_time_s placed_time_s cpu_time_s wall_time_s load_time_s
        memory_time_s read_time_s write_time_s stall_s exact_time_s
        mean_s min_s max_s user_s system_s
        first_touch_s cpu_near_s time_near_s
        cpu_observed_s time_observed_s time_all_far_s time_movable_far_s time_plan_s""",
    ),
    ("s", "higher", "lifetime_s levelled_lifetime_s"),
    (
        "s",
        None,
        """
        attached_s common_time_s run_time_s start_s end_s length_s period_s off_cpu_s steal_s
        stddev_s""",
    ),
    ("years", "higher", "lifetime_years"),
    (
        "J",
        "lower",
        """
        energy_J exact_energy_J default_energy_J placed_energy_J energy_all_near_J
        energy_all_far_J energy_plan_J read_energy_J write_energy_J standby_energy_J
        refresh_energy_J activate_J array_write_J read_J write_J refresh_J background_J""",
    ),
    ("B/s", None, "traffic_bytes_per_s"),
    ("s", None, "active_power_down_s power_down_s self_refresh_s"),
    ("ns", None, "timeout_ns power_down_after_ns self_refresh_after_ns"),
    ("price", "lower", "price price_plan price_all_near price_all_far"),
    ("1/GiB", "lower", "faults_per_gib"),
    ("B", "lower", "peak_memory_bytes settled_memory_bytes"),
    (
        "B",
        None,
        """
        access_unit_bytes allocated_bytes arrays_bytes block_bytes effective_last_cache_bytes
        fixed_bytes high huge_bytes interleave_bytes knee_bytes last_cache_bytes low
        movable_bytes moved_bytes near_budget_bytes near_bytes near_page_bytes far_page_bytes
        page_bytes part_bytes placed_bytes read_bytes region_bytes reported_last_cache_bytes
        size_bytes stride_bytes undone_bytes value_bytes wanted_bytes write_bytes
        read_ahead_bytes""",
    ),
    ("count", "higher", "parallelism"),
    ("count", "lower", "fences_per_op lines_per_op"),
    (
        "count",
        None,
        """
        activates allocations bank bank_group best_near_threads blocks_per_fence
        calibration_level cases chains channel chaser_cpu children cols compared_iterations
        context_switches count covered_points cpu cpu_node cpus cycles descriptor device_reads
        device_writes elements entries exit_code far_reads far_rows far_threads far_writes
        first_address host_epochs instructions interval involuntary_switches iterations
        l3_stall_cycles last_address line lines_written llc_load_misses llc_loads
        llc_store_misses llc_stores looks major_faults memory_node minor_faults most_line_writes
        most_page_writes moved_pages n near_reads near_threads near_writes operations outliers
        page_faults pages_written pairs pid planned queue_depth rank reads records refreshes
        region_count repeat requests row_hit_cap row_hits rows rule runs samples schema_version
        seed series set_aside site size_entries stalls steps sweeps threads traffic_cpus value
        window write_drain writes writes_between""",
    ),
    (
        "ratio",
        "lower",
        """
        slowdown slowdown_all_far slowdown_movable_far slowdown_plan unflushed_slowdown regret
        wall_slowdown predicted_slowdown whole_sites_slowdown all_far_slowdown""",
    ),
    ("ratio", "higher", "time_saved energy_saved"),
    (
        "ratio",
        None,
        """
        ratio pmdk_ratio ratio_to_glibc wall_ratio_to_glibc peak_ratio_to_glibc ratio_to_malloc
        settled_share changed_share dependent_share life_share near_share read_share
        sampled_share share stall_share update_share depth published_slowdown traffic_factor
        uniform_near_share unknown_share unseen_share utilization within_slowdown foreign_cpus
        least_cpu_share spread steal worst_spread cpu_share a b matrix error
        relative_error time_difference energy_difference row_hit_share""",
    ),
)

#: Figures about nearfar itself, result checks or timing parameters: not compared.
_NOT_COMPARED: tuple[tuple[str, str], ...] = (
    ("1/s", "requests_per_s exact_requests_per_s"),
    ("s", "traced_time_s took_s sampling_period_s traffic_interval_s"),
    ("ns", "timer_ns"),
    ("ratio", "worst_error mean_error leave_one_out_error sampling_share"),
)


def _table() -> dict[str, Key]:
    rows = [(key, Key(unit, way)) for unit, way, keys in _DIRECTED for key in keys.split()]
    rows += [(key, Key(unit, None, False)) for unit, keys in _NOT_COMPARED for key in keys.split()]
    table = dict(rows)
    assert len(table) == len(rows), "a key is declared twice"
    return table


KEYS = _table()
