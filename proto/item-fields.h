/* For those who read or write items directly: the field numbers of perfd.v1.Packet and perfd.v1.Item. */
#pragma once

enum {
        PACKET_ITEMS = 4,
        PACKET_TASKS = 8,
        PACKET_FORGOTTEN_TASKS = 9,
        PACKET_WALL = 10,

        ITEM_TIME = 1,
        ITEM_EVENT = 2,
        ITEM_CPU = 3,
        ITEM_PID = 4,
        ITEM_TID = 5,
        ITEM_NUMBERS = 7,
        ITEM_TEXTS = 8,
        ITEM_RAW = 9,
        ITEM_KERNEL_CALLCHAIN = 10,
        ITEM_USER_CALLCHAIN = 11,
        ITEM_IP = 12,
        ITEM_ADDRESS = 13,
        ITEM_PERIOD = 14,
        ITEM_FAULTS = 15,

        /* side records: one of them, or none */
#define RECORD_ITEM(code, number, member, name) ITEM_##code = number,
#include "proto/record.def"

        /* rare parts of samples */
        ITEM_READ_VALUES = 40,
        ITEM_BRANCHES = 41,
        ITEM_BRANCH_HW_INDEX = 42,
        ITEM_USER_REGISTERS = 43,
        ITEM_INTERRUPT_REGISTERS = 44,
        ITEM_USER_STACK = 45,
        ITEM_WEIGHT = 46,
        ITEM_DATA_SOURCE = 47,
        ITEM_TRANSACTION = 48,
        ITEM_PHYSICAL_ADDRESS = 49,
        ITEM_CGROUP_ID = 50,
        ITEM_DATA_PAGE_SIZE = 51,
        ITEM_CODE_PAGE_SIZE = 52,
        ITEM_AUX_BYTES = 53,
        ITEM_SAMPLE_ID = 54,
        ITEM_STREAM_ID = 55,

        ITEM_ZERO_TID = 56,
};
