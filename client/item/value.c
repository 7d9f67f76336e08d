/* Fields of an item by their number and by their name. */
#include <string.h>

#include "client/item/item.h"

bool perfd_item_get(const perfd_item *item, size_t i, perfd_value *ret_value) {
        const perfd_field *f;
        const FieldPlace *place;

        if (!item->places || i >= item->descriptor->event.n_fields)
                return false;
        f = &item->descriptor->event.fields[i];
        place = &item->places[i];
        if (field_is_text(f))
                *ret_value = (perfd_value){ .field = f, .text = item->texts[place->first] };
        else
                *ret_value = (perfd_value){
                        .field = f, .numbers = item->numbers.list + place->first, .count = place->count
                };
        return true;
}

bool perfd_item_find(const perfd_item *item, const char *name, perfd_value *ret_value) {
        if (!item->places)
                return false;
        for (size_t i = 0; i < item->descriptor->event.n_fields; i++)
                if (strcmp(item->descriptor->event.fields[i].name, name) == 0)
                        return perfd_item_get(item, i, ret_value);
        return false;
}
