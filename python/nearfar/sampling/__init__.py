"""Programs sampled while they run natively."""
