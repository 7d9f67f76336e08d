/* For those who read or write items directly: the field numbers of perfd.v1.Packet and perfd.v1.Item. */
#pragma once

enum {
        PACKET_ITEMS = 4,

        ITEM_TIME = 1,
        ITEM_EVENT = 2,
        ITEM_CPU = 3,
        ITEM_PID = 4,
        ITEM_TID = 5,
        ITEM_COMM = 6,
        ITEM_NUMBERS = 7,
        ITEM_TEXTS = 8,
        ITEM_RAW = 9,
        ITEM_KERNEL_CALLCHAIN = 10,
        ITEM_USER_CALLCHAIN = 11,
        ITEM_IP = 12,
        ITEM_ADDRESS = 13,
        ITEM_PERIOD = 14,
        ITEM_COMM_RECORD = 20,
        ITEM_FORK = 21,
        ITEM_EXIT = 22,
        ITEM_MMAP2 = 23,
        ITEM_LOST = 24,
        ITEM_LOST_SAMPLES = 25,
        ITEM_THROTTLE = 26,
        ITEM_UNTHROTTLE = 27,
};
