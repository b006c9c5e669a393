#pragma once

#include "nearfar/persist/pool.hpp"
